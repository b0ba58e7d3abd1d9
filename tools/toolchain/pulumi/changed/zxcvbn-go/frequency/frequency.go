// Package frequency reads the lists of common words and names of package data.
package frequency

import (
	"encoding/json"
	"fmt"

	"github.com/ccojocar/zxcvbn-go/data"
)

// List is a list of words, the most frequent one first.
type List struct {
	Name string
	List []string
}

var files = map[string]string{
	"MaleNames":   "data/MaleNames.json",
	"FemaleNames": "data/FemaleNames.json",
	"Surname":     "data/Surnames.json",
	"English":     "data/English.json",
	"Passwords":   "data/Passwords.json",
}

// Lists goes through all lists by name. It reads them as it goes, so that a program pays only where it asks.
func Lists(yield func(string, List) bool) {
	for name, file := range files {
		list := List{}
		if err := json.Unmarshal(data.MustAsset(file), &list); err != nil {
			panic(fmt.Sprintf("%s: %v", file, err))
		}
		list.Name = name
		if !yield(name, list) {
			return
		}
	}
}
