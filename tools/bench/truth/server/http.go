package main

// The part of HTTP/1.1 that load clients use: requests with a length, responses with a length or in chunks.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	largestBody  = 64 << 20
	defaultCount = 16
	streamHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)

var (
	tokenChunk = chunk(event(`"finish_reason":null`))
	lastChunk  = chunk(event(`"finish_reason":"length"`))
)

type request struct {
	method, path string
	body         []byte
}

func event(finish string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"mock","choices":[{"index":0,` +
		`"delta":{"content":" word"},"text":" word",` + finish + `}]}` + "\n\n"
}

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func readRequest(input *bufio.Reader) (request, error) {
	line, err := input.ReadSlice('\n')
	if err != nil {
		return request{}, err
	}
	words := strings.Fields(string(line))
	if len(words) != 3 {
		return request{}, errors.New("not HTTP/1.1")
	}
	asked := request{method: words[0], path: words[1]}
	length := 0
	for {
		line, err := input.ReadSlice('\n')
		if err != nil {
			return request{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil || length < 0 || length > largestBody {
				return request{}, errors.New("no valid length")
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return request{}, errors.New("a request in chunks is not read")
		}
	}
	if length > 0 {
		asked.body = make([]byte, length)
		if _, err := io.ReadFull(input, asked.body); err != nil {
			return request{}, err
		}
	}
	return asked, nil
}

func respond(output *bufio.Writer, status, kind, body string) {
	fmt.Fprintf(output, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
	output.Flush()
}

// TokensOf returns the length that a body asks for.
func tokensOf(body []byte) int {
	for _, name := range []string{`"max_tokens"`, `"max_completion_tokens"`} {
		if _, rest, found := bytes.Cut(body, []byte(name)); found {
			rest = bytes.TrimLeft(rest, " :")
			end := 0
			for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
				end++
			}
			if count, err := strconv.Atoi(string(rest[:end])); err == nil && count > 0 {
				return count
			}
		}
	}
	return defaultCount
}

// WordsOf returns the words of a body, which stand in for the tokens of its prompt.
func wordsOf(body []byte) int { return bytes.Count(body, []byte(" ")) + 1 }
