// SPDX-License-Identifier: Apache-2.0

// Reflectors of client-go, each with a connection of its own, which say what becomes of them as tests/cluster/reflect does.
//
//	reflectors KUBECONFIG RESOURCE NAMESPACE CLIENTS
//
// They are what client-go's informers are made of, with its settings as they come. An object named "sentinel" is spoken of
// whenever one of them sees it. "quit" on standard input ends it; what else is written there has it print its counters.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const sentinel = "sentinel"

var printing sync.Mutex

func say(line map[string]any) {
	line["at"] = float64(time.Now().UnixNano()) / 1e9
	printing.Lock()
	defer printing.Unlock()
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

// store counts what comes of lists, and passes everything on.
type store struct {
	cache.Store
	client int
	lists  atomic.Int64
}

func (s *store) Replace(items []interface{}, version string) error {
	err := s.Store.Replace(items, version)
	say(map[string]any{"event": "synced", "client": s.client, "count": len(items), "lists": s.lists.Add(1)})
	for _, item := range items {
		s.look(item)
	}
	return err
}

func (s *store) Add(object interface{}) error {
	s.look(object)
	return s.Store.Add(object)
}

func (s *store) Update(object interface{}) error {
	s.look(object)
	return s.Store.Update(object)
}

func (s *store) look(object interface{}) {
	if it, ok := object.(*v1.ConfigMap); ok && it.Name == sentinel {
		say(map[string]any{"event": "sentinel", "client": s.client, "value": it.Data["value"]})
	}
}

func start(ctx context.Context, kubeconfig, resource, namespace string, number int) (*store, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = fmt.Sprintf("client-go/%d", number)
	// Transports are shared among equal configurations, but for those with a way of their own to dial.
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	config.Dial = dialer.DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kept := &store{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), client: number}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), resource, namespace, fields.Everything())
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client), &v1.ConfigMap{}, kept,
		cache.ReflectorOptions{})
	go reflector.RunWithContext(ctx)
	return kept, nil
}

func run(kubeconfig, resource, namespace string, clients int) error {
	stores := make([]*store, clients)
	for i := range stores {
		var err error
		if stores[i], err = start(context.Background(), kubeconfig, resource, namespace, i); err != nil {
			return err
		}
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan() && input.Text() != "quit"; {
		lists, objects := []int64{}, []int{}
		for _, one := range stores {
			lists = append(lists, one.lists.Load())
			objects = append(objects, len(one.ListKeys()))
		}
		say(map[string]any{"event": "counters", "lists": lists, "objects": objects})
	}
	return nil
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: reflectors KUBECONFIG RESOURCE NAMESPACE CLIENTS")
		os.Exit(2)
	}
	clients, err := strconv.Atoi(os.Args[4])
	if err == nil {
		err = run(os.Args[1], os.Args[2], os.Args[3], clients)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
