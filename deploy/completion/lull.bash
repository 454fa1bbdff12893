# SPDX-License-Identifier: Apache-2.0
# bash completion for lull(8). The objects and commands are those that "lull help" prints.

# The usage is a table: "  policy   list | show NAME | why NAME".
_lull_objects() {
        lull help 2>/dev/null | sed -n '/^Objects/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_lull_commands() {
        lull help 2>/dev/null | sed -n "/^Objects/,/^\$/s/^  $1 *//p" | tr -d '|' | tr -s ' ' '\n' | grep -v '^[A-Z]*$'
        echo help
}

_lull_policies() {
        lull policy list 2>/dev/null | sed 1d | cut -d ' ' -f 1
}

_lull_gpus() {
        { lull gpu list; lull gpu top; } 2>/dev/null | cut -d ' ' -f 1 | grep -vE '^(DEVICE|WORKLOAD)$'
}

_lull() {
        local current=${COMP_WORDS[COMP_CWORD]} words=() i candidates

        COMPREPLY=()
        for ((i = 1; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in
                -s | --socket) ((i++)) ;;
                -*) ;;
                *) words+=("${COMP_WORDS[i]}") ;;
                esac
        done

        case ${COMP_WORDS[COMP_CWORD - 1]} in
        -s | --socket)
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                return
                ;;
        esac

        case ${#words[@]} in
        0) if [[ $current == -* ]]; then
                candidates="-j --json -p --pretty -s --socket -V --version -h --help"
        else
                candidates="$(_lull_objects) help"
        fi ;;
        1) candidates=$(_lull_commands "${words[0]}") ;;
        2) if [[ ${words[0]} == policy && ${words[1]} =~ ^(show|why|wake|sleep)$ ]]; then
                candidates=$(_lull_policies)
        elif [[ ${words[0]} == gpu && ${words[1]} =~ ^(show|why)$ ]]; then
                candidates=$(_lull_gpus)
        fi ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
}

complete -F _lull lull
