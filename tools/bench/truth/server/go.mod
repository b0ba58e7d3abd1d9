module truth

go 1.24
