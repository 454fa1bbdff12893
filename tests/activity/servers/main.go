// SPDX-License-Identifier: Apache-2.0

// A server as most Go programs have one: net/http, HTTP/1.1 on port 8800, HTTP/2 over TLS on 8801.
package main

import (
	"io"
	"net/http"
	"os"
)

func serve(w http.ResponseWriter, r *http.Request) {
	answer, err := http.Get("http://127.0.0.1:9000" + r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	io.Copy(w, answer.Body)
}

func main() {
	http.HandleFunc("/", serve)
	go http.ListenAndServe(":8800", nil)
	panic(http.ListenAndServeTLS(":8801", os.Args[1], os.Args[2], nil))
}
