// Sends pipelined requests to a server of the service reverse, checks each response, prints how many. It speaks the wire
// protocol itself (docs/reference/wire-protocol.md, section 1).
// go build client.go && ./client HOST PORT [COUNT]
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	request, response, refusal = 4, 5, 6
	headerSize, longest        = 12, 16 << 20
	inFlight                   = 64
	limit                      = 30 * time.Second
)

func makeRequest(number int) []byte {
	return []byte("request " + strconv.Itoa(number))
}

func reversed(text []byte) []byte {
	other := make([]byte, len(text))
	for i, character := range text {
		other[len(text)-1-i] = character
	}
	return other
}

func send(output *bufio.Writer, payload []byte) {
	header := binary.BigEndian.AppendUint32(nil, uint32(headerSize+len(payload)))
	header = binary.BigEndian.AppendUint32(header, request)
	output.Write(binary.BigEndian.AppendUint32(header, uint32(len(payload))))
	output.Write(payload) // Flush() returns the error of each of them
}

func receive(input io.Reader) ([]byte, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(input, header); err != nil {
		return nil, err
	}
	size, id, length := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:]), binary.BigEndian.Uint32(header[8:])
	if length > longest || size != headerSize+length {
		return nil, fmt.Errorf("a malformed frame of %d bytes", size)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(input, payload); err != nil {
		return nil, err
	}
	if id == refusal && length >= 4 {
		return nil, fmt.Errorf("refused with code %d: %q", binary.BigEndian.Uint32(payload), payload[4:])
	}
	if id != response {
		return nil, fmt.Errorf("message %d instead of a response", id)
	}
	return payload, nil
}

func ask(address string, count int) error {
	connection, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return err
	}
	defer connection.Close()
	input, output := bufio.NewReader(connection), bufio.NewWriter(connection)
	for answered, sent := 0, 0; answered < count; answered++ {
		for ; sent < count && sent-answered < inFlight; sent++ {
			send(output, makeRequest(sent))
		}
		connection.SetDeadline(time.Now().Add(limit))
		if err := output.Flush(); err != nil {
			return err
		}
		payload, err := receive(input)
		if err != nil {
			return err
		}
		if !bytes.Equal(reversed(payload), makeRequest(answered)) {
			return fmt.Errorf("a wrong response to request %d", answered)
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage:", os.Args[0], "HOST PORT [COUNT]")
		os.Exit(2)
	}
	count := 10000
	if len(os.Args) > 3 {
		count, _ = strconv.Atoi(os.Args[3])
	}
	if err := ask(net.JoinHostPort(os.Args[1], os.Args[2]), count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(count, "responses, all right")
}
