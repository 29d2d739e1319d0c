// Coders of Go, measured as the ones of Rust's program beside this one: the same lines in, the same lines out.
package main

import (
	"bufio"
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

const pieceBytes = 8192

// stream is what all three coders are.
type stream interface {
	io.Writer
	Flush() error
	Close() error
	Reset(io.Writer)
}

type program struct {
	coding, name string
	levels       []int
	make         func(level int) (stream, error)
	decode       func(io.Reader) (io.Reader, error)
}

var programs = []program{
	{"gzip", "go", []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, func(level int) (stream, error) { return stdgzip.NewWriterLevel(nil, level) }, ungzip},
	{"gzip", "klauspost", []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, func(level int) (stream, error) { return gzip.NewWriterLevel(nil, level) }, ungzip},
	{"zstd", "klauspost-zstd", []int{1, 2, 3, 4}, func(level int) (stream, error) {
		// Checksums off, as in the library that it is compared with; one goroutine, so that nothing is handed over.
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(level)), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	}, func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) }},
}

func ungzip(r io.Reader) (io.Reader, error) { return stdgzip.NewReader(r) }

// code writes a body whole or in pieces, each of which can be decoded at once.
func code(s stream, body []byte, parts bool, out *bytes.Buffer) error {
	out.Reset()
	s.Reset(out)
	for parts && len(body) > pieceBytes {
		if _, err := s.Write(body[:pieceBytes]); err != nil {
			return err
		}
		if err := s.Flush(); err != nil {
			return err
		}
		body = body[pieceBytes:]
	}
	if _, err := s.Write(body); err != nil {
		return err
	}
	return s.Close()
}

// cpuTime is the processor time of the whole process: what its collector takes is part of the price.
func cpuTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func measure(p *program, s stream, body []byte, parts bool, ns int64) (int, int64, error) {
	var out bytes.Buffer
	if err := code(s, body, parts, &out); err != nil {
		return 0, 0, err
	}
	size := out.Len()
	r, err := p.decode(bytes.NewReader(out.Bytes()))
	if err != nil {
		return 0, 0, err
	}
	if decoded, err := io.ReadAll(r); err != nil || !bytes.Equal(decoded, body) {
		return 0, 0, errors.New(p.name + ": what it wrote is something else")
	}
	begin, times := cpuTime(), int64(0)
	for {
		if err := code(s, body, parts, &out); err != nil {
			return 0, 0, err
		}
		times++
		if taken := cpuTime() - begin; taken >= ns {
			return size, taken / times, nil
		}
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "--list" {
		for _, p := range programs {
			for _, level := range p.levels {
				fmt.Println(p.coding, p.name, level, "whole,parts")
			}
		}
		return nil
	}
	runtime.GOMAXPROCS(1)
	coders, bodies := map[string]stream{}, map[string][]byte{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 5)
		if len(words) < 5 {
			return errors.New("PROGRAM LEVEL MODE NANOSECONDS PATH")
		}
		level, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		ns, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return err
		}
		var p *program
		for i := range programs {
			if programs[i].name == words[0] {
				p = &programs[i]
			}
		}
		if p == nil {
			return errors.New("no such program")
		}
		body, ok := bodies[words[4]]
		if !ok {
			if body, err = os.ReadFile(words[4]); err != nil {
				return err
			}
			bodies[words[4]] = body
		}
		key := words[0] + " " + words[1]
		s, ok := coders[key]
		if !ok {
			if s, err = p.make(level); err != nil {
				return err
			}
			coders[key] = s
		}
		size, taken, err := measure(p, s, body, words[2] == "parts", ns)
		if err != nil {
			return err
		}
		fmt.Println(size, taken)
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
