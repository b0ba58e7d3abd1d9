// A server that streams as vLLM does, at a set pace, and knows the truth: its log holds what happened to each request.
//
//	truth -addr 127.0.0.1:8000 -log truth.jsonl -ttft 50ms -itl 10ms [-slots 64] [-errors 0.05] [-resets 0.05]
//	      [-slow 0.1 -slow-ttft 2s] [-cert FILE -key FILE] [-procs 1] [-gaps] [-announce]
//
// A request waits for one of the slots in the order of arrival, then for the time to its first token. What a share of the
// requests meets instead depends on their number alone, so two runs meet the same. The log is written at SIGTERM: one JSON
// object a line, instants in nanoseconds of CLOCK_MONOTONIC, which every process of the machine reads alike.
//
// It speaks HTTP/1.1 itself: a general server would be the limit of what it judges. It serves a trusted client on the
// loopback, and nothing else.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Settings are the pace and the faults of the server.
type settings struct {
	ttft, itl, slowTTFT  time.Duration
	slots                int
	errors, resets, slow float64
	gaps, announce       bool
}

// Record is the truth about one request; instants that it did not reach are 0.
type record struct {
	Number   int64  `json:"number"`
	Arrival  int64  `json:"arrival"`
	Admitted int64  `json:"admitted"`
	First    int64  `json:"first"`
	Last     int64  `json:"last"`
	Done     int64  `json:"done"`
	Tokens   int    `json:"tokens"`
	Outcome  string `json:"outcome"`
	// Nanoseconds from each token to the next, where they are asked for.
	Gaps []int64 `json:"gaps,omitempty"`
}

// Server holds all that the connections share.
type server struct {
	settings
	slot chan struct{}

	mutex            sync.Mutex
	records          []*record
	running, waiting int
	succeeded        int64
	prompts, tokens  int64
}

var (
	began     = time.Now()
	beganMono = monotonic()
)

// Monotonic returns CLOCK_MONOTONIC, whose zero Go does not tell.
func monotonic() int64 {
	var at syscall.Timespec
	const clockMonotonic = 1
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		log.Fatalf("no monotonic clock: %v", err)
	}
	return at.Nano()
}

func now() int64 { return beganMono + int64(time.Since(began)) }

func main() {
	address := flag.String("addr", "127.0.0.1:8000", "address to listen on")
	logFile := flag.String("log", "", "file for the truth, written at SIGTERM")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "its key")
	procs := flag.Int("procs", 1, "threads that run at once")
	var given settings
	flag.DurationVar(&given.ttft, "ttft", 0, "time to the first token")
	flag.DurationVar(&given.itl, "itl", 0, "time between two tokens")
	flag.DurationVar(&given.slowTTFT, "slow-ttft", 2*time.Second, "time to the first token of a slow start")
	flag.IntVar(&given.slots, "slots", 0, "requests that are served at once; 0: any number")
	flag.Float64Var(&given.errors, "errors", 0, "share of requests that get a status 500")
	flag.Float64Var(&given.resets, "resets", 0, "share of requests whose connection is reset after half of the tokens")
	flag.Float64Var(&given.slow, "slow", 0, "share of requests that start slowly")
	flag.BoolVar(&given.gaps, "gaps", false, "log the time between each two tokens")
	flag.BoolVar(&given.announce, "announce", false, "print the instant of the first request when it arrives")
	flag.Parse()
	runtime.GOMAXPROCS(*procs)
	// A collection would delay tokens; the records of a run fit into memory.
	debug.SetGCPercent(400)

	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	var secure *tls.Config
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	served := &server{settings: given}
	if given.slots > 0 {
		served.slot = make(chan struct{}, given.slots)
	}
	go served.accept(listener, secure)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	if *logFile != "" {
		if err := served.write(*logFile); err != nil {
			log.Fatal(err)
		}
	}
}

func (s *server) accept(listener net.Listener, secure *tls.Config) {
	for {
		raw, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		tcp := raw.(*net.TCPConn)
		var connection net.Conn = tcp
		if secure != nil {
			connection = tls.Server(tcp, secure)
		}
		go s.serve(connection, tcp)
	}
}

// Serve answers the requests of one connection, one after the other.
func (s *server) serve(connection net.Conn, tcp *net.TCPConn) {
	defer connection.Close()
	input := bufio.NewReaderSize(connection, 16<<10)
	output := bufio.NewWriterSize(connection, 16<<10)
	for {
		asked, err := readRequest(input)
		if err != nil {
			return
		}
		arrival := now()
		if asked.method == "GET" {
			s.tell(output, asked.path)
			continue
		}
		if asked.path != "/v1/chat/completions" && asked.path != "/v1/completions" {
			respond(output, "404 Not Found", "application/json", `{"error":{"message":"no such path"}}`)
			continue
		}
		if !s.complete(output, tcp, arrival, asked.body) {
			return
		}
	}
}

// Complete answers one request; false where its connection ended.
func (s *server) complete(output *bufio.Writer, tcp *net.TCPConn, arrival int64, body []byte) bool {
	wanted := tokensOf(body)
	taken := s.begin(arrival)
	fate := s.fateOf(taken.Number)
	if s.slot != nil {
		s.slot <- struct{}{}
	}
	s.admit(taken)
	alive := true
	switch fate {
	case "error":
		time.Sleep(s.ttft)
		respond(output, "500 Internal Server Error", "application/json", `{"error":{"message":"as it was asked to"}}`)
		taken.Outcome = "error"
	default:
		alive = s.stream(output, tcp, taken, wanted, fate, body)
	}
	taken.Done = now()
	if s.slot != nil {
		<-s.slot
	}
	s.end(taken, wordsOf(body))
	return alive
}

// Stream sends the tokens at their pace; false where the connection ended.
func (s *server) stream(
	output *bufio.Writer, tcp *net.TCPConn, taken *record, wanted int, fate string, body []byte,
) bool {
	ttft := s.ttft
	if fate == "slow" {
		ttft = s.slowTTFT
	}
	begin := time.Now()
	last := wanted
	if fate == "reset" {
		last = max(1, wanted/2)
	}
	for token := 0; token < last; token++ {
		// By the plan, not by the last token: what comes late does not delay what follows.
		if pause := time.Until(begin.Add(ttft + time.Duration(token)*s.itl)); pause > 0 {
			time.Sleep(pause)
		}
		at := now()
		if token == 0 {
			taken.First = at
			output.WriteString(streamHead)
			if s.gaps {
				taken.Gaps = make([]int64, 0, last-1)
			}
		} else if s.gaps {
			taken.Gaps = append(taken.Gaps, at-taken.Last)
		}
		if token == wanted-1 {
			output.WriteString(lastChunk)
		} else {
			output.WriteString(tokenChunk)
		}
		if output.Flush() != nil {
			taken.Outcome = "gone"
			return false
		}
		taken.Last = at
		taken.Tokens = token + 1
	}
	if fate == "reset" {
		taken.Outcome = "reset"
		tcp.SetLinger(0)
		tcp.Close()
		return false
	}
	usage := fmt.Sprintf(
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"mock","choices":[],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n",
		wordsOf(body), wanted, wordsOf(body)+wanted)
	output.WriteString(chunk(usage + "data: [DONE]\n\n"))
	output.WriteString("0\r\n\r\n")
	if output.Flush() != nil {
		taken.Outcome = "gone"
		return false
	}
	taken.Outcome = "ok"
	return true
}

// FateOf returns what happens to a request: by its number alone, evenly spread.
func (s *server) fateOf(number int64) string {
	const golden = 0.6180339887498949
	place := float64(number) * golden
	place -= float64(int64(place))
	switch {
	case place < s.errors:
		return "error"
	case place < s.errors+s.resets:
		return "reset"
	case place < s.errors+s.resets+s.slow:
		return "slow"
	}
	return ""
}

func (s *server) begin(arrival int64) *record {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := &record{Number: int64(len(s.records)), Arrival: arrival}
	if s.announce && taken.Number == 0 {
		fmt.Println(arrival)
	}
	s.records = append(s.records, taken)
	s.waiting++
	return taken
}

func (s *server) admit(taken *record) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken.Admitted = now()
	s.waiting--
	s.running++
}

func (s *server) end(taken *record, words int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.running--
	s.tokens += int64(taken.Tokens)
	s.prompts += int64(words)
	if taken.Outcome == "ok" {
		s.succeeded++
	}
}

// Tell answers the requests around a load: the model, health, and vLLM's own counters.
func (s *server) tell(output *bufio.Writer, path string) {
	switch path {
	case "/v1/models":
		respond(output, "200 OK", "application/json",
			`{"object":"list","data":[{"id":"mock","object":"model","created":1,"owned_by":"truth","max_model_len":131072}]}`)
	case "/health":
		respond(output, "200 OK", "text/plain", "")
	case "/metrics":
		s.mutex.Lock()
		text := fmt.Sprintf("vllm:num_requests_running{engine=\"0\"} %d\nvllm:num_requests_waiting{engine=\"0\"} %d\n"+
			"vllm:request_success_total{engine=\"0\",finished_reason=\"length\"} %d\nvllm:prompt_tokens_total{engine=\"0\"} %d\n"+
			"vllm:generation_tokens_total{engine=\"0\"} %d\nvllm:prompt_tokens_cached_total{engine=\"0\"} 0\n"+
			"process_start_time_seconds %d\n", s.running, s.waiting, s.succeeded, s.prompts, s.tokens, began.Unix())
		s.mutex.Unlock()
		respond(output, "200 OK", "text/plain; version=0.0.4", text)
	default:
		respond(output, "404 Not Found", "application/json", `{"error":{"message":"no such path"}}`)
	}
}

// Write stores the truth, the requests in the order of their arrival.
func (s *server) write(path string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	file, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	output := bufio.NewWriter(file)
	lines := json.NewEncoder(output)
	for _, taken := range s.records {
		if err := lines.Encode(taken); err != nil {
			return err
		}
	}
	if err := output.Flush(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
