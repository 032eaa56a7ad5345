#compdef offload-server offload-worker offload-client offload-bench offload-report offload-rdma offload-packets offload-ctl offload-doctor
# zsh completion of the programs of the suite, from the --help of each, as the one for bash.

local help entry type prev=$words[CURRENT-1]
local -a command options
(( CURRENT > 2 )) && [[ $words[2] == [a-z]* ]] && command=($words[2])
help=$(COLUMNS= $words[1] $command --help 2>/dev/null) || help=$(COLUMNS= $words[1] --help 2>/dev/null) || return 1

if [[ $prev == -* ]]; then
  entry=$(awk -v name="$prev" '
    /^  -/ { inside = 0; split($1, names, ","); for (i in names) if (names[i] == name) inside = 1 }
    /^$/ { inside = 0 }
    inside { printf "%s ", $0 }' <<<"$help")
  type=${${(z)entry}[2]}
  case $type in
    FILE* | RESULT*) _files; return ;;
    NAME=*) compadd -- ${(s:, :)${${entry##*: }%% #}}; return ;; # "... : red, green" at the end
    [A-Z]*[A-Z] | [A-Z]*=*) return 1 ;; # a value that only the user knows
  esac
fi
if [[ $PREFIX == -* ]]; then
  options=(${(f)"$(grep -oE '^  (-[a-z],)?--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')"})
  compadd -- $options
elif (( CURRENT == 2 )); then
  compadd -- $(sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p; /^Operations:/,/^With/s/^  \([a-z, -]*[a-z]\)  .*/\1/p' <<<"$help" | tr -d ,)
else
  _files
fi
