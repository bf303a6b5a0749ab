# complete.sh SCRIPT WORD...: what bash would offer for the last word.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { :; }
_tgc
echo "${COMPREPLY[@]}"
