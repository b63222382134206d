#!/usr/bin/env bats
# Completion in the shells themselves: `perch completion` and `perchctl completion`.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# in_bash PROGRAM WORD...: what bash would complete the last word with
in_bash() {
  # shellcheck disable=SC2016  # the inner shell's
  run_expecting 0 bash -c 'source completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); function=$(complete -p "$1")
    function=${function#*-F } && ${function%% *} "$1" "${@: -1}" "${@: -2:1}" 2>/dev/null; printf "%s " "${COMPREPLY[@]}"' bash "$@"
}

# in_zsh LINE EXPECTED: a key press after LINE makes zsh show EXPECTED
in_zsh() {
  cat >terminal <<'ZSH'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; stty -echo; autoload -Uz compinit && compinit -u -D; eval \"\$(<completion.zsh)\"; echo re''ady"
zpty -r -m shell shown '*ready*'
zpty -n -w shell "$1"$'\t'
zpty -r -m shell shown "*$2*"
ZSH
  LIMIT=30 run_expecting 0 zsh terminal "$@"
}

@test "bash completes perch's commands, options and values" {
  "$PERCH" completion bash >completion.bash
  run_expecting 0 shellcheck completion.bash
  in_bash perch l
  assert_line --index 0 "lat "
  in_bash perch bw --queue
  assert_output "--queue-pairs "
  in_bash perch lat --queue # belongs to bw
  assert_output " "
  in_bash perch lat --backend v
  assert_output "verbs "
  in_bash perch lat --op = se
  assert_output "send send-imm "
  in_bash perch check bw --queue
  assert_output "--queue-pairs "
  in_bash perch check t
  assert_output "transfer "
  in_bash perch completion z
  assert_output "zsh "
  in_bash perch lat -d l
  assert_output --partial "lo "
  touch token-of-mine
  in_bash perch lat --token-file token
  assert_output "token-of-mine "
  in_bash perch lat --connection-f # hidden
  assert_output " "
}

@test "zsh completes perch's commands, options and values" {
  "$PERCH" completion zsh >completion.zsh
  run_expecting 0 zsh -n completion.zsh
  in_zsh "perch tran" transfer
  in_zsh "perch bw --queue" queue-pairs
  in_zsh "perch bw -s64K -q 4 --backend ver" verbs
  in_zsh "perch check bw --memory huge:2" huge:2M
  in_zsh "perch serve --on" once
  in_zsh "perch completion z" zsh
  touch token-of-mine
  in_zsh "perch lat --token-file tok" token-of-mine
}

@test "bash and zsh complete perchctl's commands, options and paths" {
  mkdir folder-of-mine && touch file-of-mine
  perchctl completion bash >completion.bash
  in_bash perchctl judg
  assert_output "judge "
  in_bash perchctl accept --fo
  assert_output "--force "
  in_bash perchctl judge folder
  assert_output "folder-of-mine "
  in_bash perchctl verify --signers file
  assert_output "file-of-mine "
  in_bash perchctl completion z
  assert_output "zsh "
  perchctl completion zsh >completion.zsh
  run_expecting 0 zsh -n completion.zsh
  in_zsh "perchctl compl" etion
  in_zsh "perchctl accept --fo" rce
  in_zsh "perchctl judge folder" -of-mine
}
