// Command shop is the other side of the example: it has orders of each day, is busy now and then,
// and prints the notices that it receives.
//
//	go run ./examples/nightly/shop
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
)

// order is an order as GET /orders has it.
type order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Total    float64 `json:"total"`
}

var orders = []order{{"a17", "Ada", 80.5}, {"b4", "Brouwer & Sons", 4200}, {"c9", "Chen", 19.9}, {"d2", "Dijkstra", 1500}}

func main() {
	addr := flag.String("addr", "127.0.0.1:8099", "address to listen on")
	flag.Parse()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the shop is at http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, shop()))
}

// shop returns the shop. Two of three requests for orders come when it is busy, and on the first of
// January it is closed.
func shop() http.Handler {
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case r.URL.Query().Get("day") == "2027-01-01":
			http.Error(w, "closed", http.StatusGone)
		case n%3 != 0:
			http.Error(w, "busy, come again", http.StatusServiceUnavailable)
		default:
			answer(w, orders)
		}
	})
	mux.HandleFunc("POST /orders/{id}/release", func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("released: %s\n", r.PathValue("id"))
		answer(w, map[string]string{"order": r.PathValue("id")})
	})
	mux.HandleFunc("POST /alerts", func(w http.ResponseWriter, r *http.Request) {
		var alert struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&alert); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Printf("alert: %s\n", alert.Text)
		answer(w, "seen")
	})
	return mux
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Print(err)
	}
}
