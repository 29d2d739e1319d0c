// Go's own client over HTTP/2: go run client.go URL. It prints what it got: protocol, status, coding, bytes.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	say := func(answer *http.Response, err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.Proto, answer.StatusCode, answer.Uncompressed, len(body), err)
	}
	say(client.Get(os.Args[1]))
	say(client.Post(os.Args[1], "text/plain", bytes.NewReader(make([]byte, 3<<20))))
	// Without a length: what a pipe brings.
	reader, writer := io.Pipe()
	go func() {
		for piece := 0; piece < 100; piece++ {
			writer.Write(make([]byte, 1000))
		}
		writer.Close()
	}()
	say(client.Post(os.Args[1], "text/plain", reader))
	var all sync.WaitGroup
	var lock sync.Mutex
	good := 0
	for number := 0; number < 200; number++ {
		all.Add(1)
		go func() {
			defer all.Done()
			answer, err := client.Get(os.Args[1])
			if err == nil {
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				lock.Lock()
				defer lock.Unlock()
				if err == nil && answer.ProtoMajor == 2 && len(body) == 15000 {
					good++
				}
			}
		}()
	}
	all.Wait()
	fmt.Println("together", good)
}
