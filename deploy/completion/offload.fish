# fish completion of the programs of the suite, from the --help of each, as the one for bash.

function __offload_words
    set -l words (commandline -opc)
    set -l command
    if test (count $words) -gt 1; and string match -qr '^[a-z]' -- $words[2]
        set command $words[2]
    end
    set -l help (env COLUMNS= $words[1] $command --help 2>/dev/null; or env COLUMNS= $words[1] --help 2>/dev/null)
    or return
    set -l prev $words[-1]
    if string match -q -- '-*' $prev
        set -l entry (printf '%s\n' $help | awk -v name="$prev" '
            /^  -/ { inside = 0; split($1, names, ","); for (i in names) if (names[i] == name) inside = 1 }
            /^$/ { inside = 0 }
            inside { printf "%s ", $0 }')
        set -l type (string match -r -- '^\s*\S+\s+(\S+)' $entry)[2]
        switch "$type"
            case 'FILE*' 'RESULT*'
                __fish_complete_path (commandline -ct)
                return
            case 'NAME=*' # "... : red, green" at the end
                string replace -r '.*: ' '' -- $entry | string trim | string split ', '
                return
        end
        # A value that only the user knows
        string match -qr -- '^[A-Z].*([A-Z]$|=)' "$type"; and return
    end
    if string match -q -- '-*' (commandline -ct)
        printf '%s\n' $help | string match -rg '^  (?:-[a-z],)?(--[a-z-]+)'
    else if test (count $words) -eq 1
        printf '%s\n' $help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p; /^Operations:/,/^With/s/^  \([a-z, -]*[a-z]\)  .*/\1/p' | string replace -a ',' ''
    else
        __fish_complete_path (commandline -ct)
    end
end

for program in offload-server offload-worker offload-client offload-bench offload-report offload-rdma offload-packets offload-ctl offload-doctor
    complete -c $program -f -a '(__offload_words)'
end
