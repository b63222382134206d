#!/usr/bin/env bats
# plugins/modules/perch_command.py: what a program says arrives whole, whenever it says it. Verdicts are read from it.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# module EXIT <OPTIONS: the module as Ansible runs it; its answer is in answer.json. OPTIONS are JSON.
module() {
  jq '{ANSIBLE_MODULE_ARGS: .}' >arguments.json
  run_apart "$1" python "$TOP/plugins/modules/perch_command.py" arguments.json
  printf '%s\n' "$output" | tail -n 1 >answer.json
}

# A host so slow that whoever looks for the program's end finds it over, though it was not when the second without words was.
# ansible.builtin.command says nothing here: put it above in place of the module, and see.
@test "words that come just before the end are there on a host that is slow" {
  cat >sitecustomize.py <<'END'
import subprocess, time
poll = subprocess.Popen.poll
subprocess.Popen.poll = lambda self: (time.sleep(1.5), poll(self))[1]
END
  PYTHONPATH=$PWD module 0 <<<'{"argv": ["sh", "-c", "sleep 1.2; echo words; echo more >&2"]}'
  assert_json answer.json '.stdout == "words" and .stderr == "more" and .rc == 0 and .changed'
}

@test "as much as it likes is read and written at once" {
  local -i size=3000000
  jq -n --argjson size "$size" '{argv: ["tee", "copy"], stdin: ("x" * $size)}' >options.json
  module 0 <options.json
  assert_equal "$(jq '.stdout | length' answer.json)" "$size" # the newline that stdin gets is no part of it
  assert_equal "$(wc -c <copy)" $((size + 1))
}

@test "what a program opens anew takes nothing from what was said before" {
  module 0 <<<'{"argv": ["bash", "-c", "echo one; echo two >/dev/stdout; echo e1 >&2; echo e2 >/dev/stderr; echo e3 >&2"]}'
  assert_json answer.json '.stdout == "one\ntwo" and .stderr == "e1\ne2\ne3"'
}

@test "exit codes and signals are failures with their numbers, and words" {
  module 1 <<<'{"argv": ["sh", "-c", "echo half; echo why >&2; exit 3"]}'
  assert_json answer.json '.failed and .rc == 3 and .stdout == "half" and .stderr == "why"'
  module 1 <<<'{"argv": ["sh", "-c", "kill -9 $$"]}'
  assert_json answer.json '.failed and .rc == -9'
}

@test "a program that is not there or may not be run is named, with its errno" {
  module 1 <<<'{"argv": ["/nowhere/perch", "serve"]}'
  assert_json answer.json '.failed and .rc == 2 and .msg == "/nowhere/perch cannot be run: No such file or directory" and .stdout == ""'
  touch plain
  module 1 <<<"{\"argv\": [\"$PWD/plain\"]}"
  assert_json answer.json '.failed and .rc == 13 and (.msg | endswith("plain cannot be run: Permission denied"))'
  module 1 <<<'{"argv": []}'
  assert_json answer.json '.failed and .msg == "argv is empty: name a program"'
}

@test "what a program leaves running, with its output, is not waited for" {
  module 0 <<<'{"argv": ["sh", "-c", "sleep 300 & echo $!"]}'
  kill "$(jq -r .stdout answer.json)"
}

@test "a home is found, nothing to read is nothing, and bytes that are no text do no harm" {
  HOME=/somewhere module 0 <<<'{"argv": ["sh", "-c", "echo \"$0 $(cat)\"; printf \"\\377\\n\\n\"", "~/perch"]}'
  assert_json answer.json '.stdout == "/somewhere/perch \n\ufffd"'
}

@test "in check mode nothing is run" {
  module 0 <<<'{"argv": ["touch", "made"], "_ansible_check_mode": true}'
  assert_json answer.json '.skipped and (.changed | not) and .rc == 0'
  [ ! -e made ] || fail "it was run"
}

# A terminal between, as ssh has one where a user becomes root: line ends are its own, and sudo on a slow host leaves an empty line first.
@test "what an agent says through a terminal is understood, and each of its lines is shown once" {
  cat >agent <<'END'
#!/usr/bin/env bash
printf '\r\n'
[ "$1" = poll ] || { cat agent.json; exit; }
if [ -e asked ]; then printf 'gone\r\n'; else printf 'alive\r\n'; fi
printf '{"event": "start", "role": "client", "index": 1, "total": 2, "flow": "t/a/b/0/1", "title": "first", "client": "a", "server": "b", "remaining_s": 9}\n' >progress
[ ! -e asked ] || printf '{"event": "start", "role": "client", "index": 2, "total": 2, "flow": "t/a/b/1/1", "title": "second", "client": "a", "server": "b", "remaining_s": 4}\n' >>progress
tail -c "+$((${!#} + 1))" progress | sed 's/$/\r/'
touch asked
END
  chmod +x agent
  printf '{"state": "done", "flows_done": 2}\r\n' >agent.json
  cat >wait.yml <<YAML
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - perch_wait: {agent: ["$PWD/agent"], out: "$PWD", limit: 20, interval: 0.05}
YAML
  ANSIBLE_CONFIG=$TOP/ansible.cfg LC_ALL=C.UTF-8 run_expecting 0 ansible-playbook -i localhost, wait.yml
  assert_equal "$(grep -c 'first, a -> b' <<<"$output") $(grep -c 'second, a -> b, rail 1' <<<"$output")" "1 1"
}
