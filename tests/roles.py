#!/usr/bin/env python3
"""Checks what every role must document: roles.py [ROLES] prints what is missing, a line each.

It ends with 1 where anything is missing. defaults/main.yml is the manual: every option of
meta/argument_specs.yml stands there with a comment, as a default or, where it has none, commented
out; the two agree; README.md names it, or points to the manual. No role counts on another's
variables being there, or on Ansible's own command to bring all that a program said.
"""

import re
import sys
from pathlib import Path

import yaml

FILES = ("README.md", "defaults/main.yml", "meta/main.yml", "meta/argument_specs.yml")
# what a role sets for those that follow
OUTPUTS = {
    "plan_run_dir",
    "soak_run_dir",
    "soak_over",
    "agent_soak",
    "agent_soak_ended",
    "agent_soak_trouble",
    "agent_soak_stopped",
}
VARIABLE = re.compile(r"^(?P<off># )?(?P<name>[a-z][a-z0-9]*_[a-z0-9_]+|production):( |$)")


def options(role: Path) -> dict:
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return {
        name: option
        for entry in specs.values()
        for name, option in (entry.get("options") or {}).items()
    }


def own(role: Path) -> tuple:
    """The prefixes of a role's variables; inventory_check describes the hosts' own."""
    return (
        (f"{role.name}_", "perch_", "production")
        if role.name == "inventory_check"
        else (f"{role.name}_",)
    )


def manual(role: Path):
    """The variables of defaults/main.yml, and whether words stand above them in a paragraph."""
    words = False
    for line in (role / "defaults/main.yml").read_text().splitlines():
        found = VARIABLE.match(line)
        if found and found["name"].startswith(own(role)):
            yield found["name"], bool(found["off"]), words
        elif line.startswith("#"):
            words = True
        elif not line.strip():
            words = False


def check_manual(role: Path):
    known, seen = options(role), set()
    for name, off, words in manual(role):
        seen.add(name)
        if name not in known:
            yield f"{name} is in defaults/main.yml and not in meta/argument_specs.yml"
        if not words:
            yield f"{name} has no comment in defaults/main.yml"
    for name in known.keys() - seen:
        yield f"{name} is in meta/argument_specs.yml and not in defaults/main.yml"
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text()) or {}
    for name in defaults.keys() - seen:
        yield f"{name} is in defaults/main.yml, and is no variable of this role"
    for name in defaults.keys() & known.keys():
        choices = known[name].get("choices")
        if defaults[name] is None and choices and None not in choices:
            yield f"{name} is null in defaults/main.yml, which is none of its choices"
        said = known[name].get("default", defaults[name])
        if said != defaults[name]:
            yield (
                f"{name} is {defaults[name]!r} in defaults/main.yml, and {said!r} in "
                "meta/argument_specs.yml"
            )


def check_readme(role: Path):
    text = (role / "README.md").read_text()
    for name in options(role):
        if f"`{name}`" not in text and "defaults/main.yml" not in text:
            yield f"{name} is not in README.md, which does not point to defaults/main.yml either"


def check_numbers(role: Path):
    """The range of a number is read from its description (plugins/action/perch_inventory.py)."""
    for name, option in options(role).items():
        number = {"int", "float"} & {option.get("type"), option.get("elements")}
        said = str(option.get("description", ""))
        if (
            number
            and not option.get("choices")
            and not re.search(r"(?i)\d to -?\d|\bat least \d", said)
        ):
            yield f"{name} is a number, and its description does not say of what range"


def check_strangers(role: Path, roles: list):
    """Others' variables in templates: they may be missing, unless the role includes the other."""
    tasks = "".join(file.read_text() for file in (role / "tasks").rglob("*.yml"))
    included = re.findall(r"_role:\n\s+name: (\w+)", tasks)
    strangers = "|".join(
        other.name for other in roles if other != role and other.name not in included
    )
    used = re.compile(
        rf"(?<![\w.'\"])((?:{strangers})_\w+)(?!\w|:)(?!\s*\|\s*default|\s+is\s+(?:not\s+)?defined)"
    )
    for file in sorted(
        path
        for part in ("tasks", "vars", "defaults", "templates")
        for path in (role / part).rglob("*")
        if path.is_file()
    ):
        text = re.sub(r"(?m)^\s*#.*", "", file.read_text())
        for template in (
            re.findall(
                r"\{\{.*?\}\}|\{%.*?%\}|(?<=when: ).*",
                text,
                re.DOTALL if file.suffix != ".yml" else 0,
            )
            or []
        ):
            for name in used.findall(template):
                if name not in OUTPUTS and name not in options(role):
                    where = file.relative_to(role)
                    yield f"{name} of another role is used without a default in {where}"


def check_commands(role: Path):
    """Ansible's own command may lose what a program said (plugins/modules/perch_command.py)."""
    for file in sorted((role / "tasks").rglob("*.yml")):
        for name in re.findall(
            r"(?m)^\s*(?:- )?(ansible\.builtin\.(?:command|shell|script)|command|shell|script):",
            file.read_text(),
        ):
            yield (
                f"{name} is used in {file.relative_to(role)}, and may lose what a program says: "
                "perch_command does not"
            )


def main(top: Path) -> int:
    roles = sorted(path for path in top.iterdir() if path.is_dir())
    wrong = 0
    for role in roles:
        found = [f"there is no {file}" for file in FILES if not (role / file).is_file()]
        if not found:
            found = [
                *check_manual(role),
                *check_readme(role),
                *check_numbers(role),
                *check_strangers(role, roles),
                *check_commands(role),
            ]
        for text in found:
            print(f"{role.name}: {text}")
        wrong += len(found)
    print(f"{len(roles)} roles, {wrong} things to put right")
    return 1 if wrong or not roles else 0


if __name__ == "__main__":
    sys.exit(
        main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "roles"))
    )
