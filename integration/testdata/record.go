//go:build ignore

// Command record sends requests to an application, and prints what comes back as rows for 404s.json:
//
//	go run integration/testdata/record.go -application 'Express 4.18.2' http://127.0.0.1:3000 < requests.json
//
// The requests are a JSON list of what rows of 404s.json have of a client: client, method, target and request.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type row struct {
	Application string      `json:"application"`
	Client      string      `json:"client"`
	Method      string      `json:"method"`
	Target      string      `json:"target"`
	Request     http.Header `json:"request"`
	Response    http.Header `json:"response"`
	BodyBytes   int         `json:"body_bytes"`
	BodyBegins  string      `json:"body_begins"`
}

func main() {
	application := flag.String("application", "", "the name and the version")
	flag.Parse()
	var rows []row
	check(json.NewDecoder(os.Stdin).Decode(&rows))
	for _, r := range rows {
		request, err := http.NewRequest(r.Method, flag.Arg(0)+r.Target, nil)
		check(err)
		request.Header = r.Request
		response, err := (&http.Transport{DisableCompression: true}).RoundTrip(request)
		check(err)
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusNotFound {
			log.Fatalf("%s: %s %v", r.Target, response.Status, err)
		}
		for _, field := range []string{"Connection", "Date", "Keep-Alive"} {
			response.Header.Del(field)
		}
		r.Application, r.Response, r.BodyBytes = *application, response.Header, len(body)
		r.BodyBegins = string(body[:min(len(body), 40)])
		line, _ := json.Marshal(r)
		fmt.Printf("%s,\n", line)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
