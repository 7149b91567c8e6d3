au BufRead,BufNewFile *.vyre setfiletype vyre
