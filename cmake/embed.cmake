# Writes OUT: the text of FILES as C arrays, and a table of them.
set(table "")
set(code "#include <stddef.h>\n")
set(index 0)
foreach(file ${FILES})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  get_filename_component(name ${file} NAME)
  string(APPEND code "static const char text_${index}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", text_${index}, sizeof text_${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "/* Generated from frontend/std by cmake/embed.cmake. */\n${code}"
  "const struct { const char *name, *text; size_t length; } tg_std_files[] = {\n${table}    {NULL, NULL, 0}};\n")
