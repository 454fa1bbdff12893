// SPDX-License-Identifier: Apache-2.0

// A device plugin that advertises devices by their names alone: what a container gets with one is in the runtime's CDI
// specifications, where the device is called RESOURCE=ID.
//
//	deviceplugin RESOURCE ID...
//
// It ends when the kubelet's registration socket is made anew, for then the kubelet has forgotten it, and is to be started again.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	ids      []string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	list := &api.ListAndWatchResponse{}
	for _, id := range p.ids {
		list.Devices = append(list.Devices, &api.Device{ID: id, Health: api.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{}
		for _, id := range container.DevicesIds {
			given.CdiDevices = append(given.CdiDevices, &api.CDIDevice{Name: p.resource + "=" + id})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func (p *plugin) serve() (endpoint string, err error) {
	endpoint = strings.ReplaceAll(p.resource, "/", "-") + ".sock"
	path := filepath.Join(api.DevicePluginPath, endpoint)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return "", err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return "", err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { log.Fatal(server.Serve(listener)) }()
	return endpoint, nil
}

func (p *plugin) register(endpoint string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: p.resource}
	_, err = api.NewRegistrationClient(connection).Register(context.Background(), request)
	return err
}

// awaitNewKubelet returns when the kubelet listens anew.
func awaitNewKubelet(events <-chan fsnotify.Event) {
	for event := range events {
		if event.Name == api.KubeletSocket && event.Has(fsnotify.Create) {
			return
		}
	}
}

func run(resource string, ids []string) error {
	p := &plugin{resource: resource, ids: ids}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := watcher.Add(api.DevicePluginPath); err != nil {
		return err
	}
	endpoint, err := p.serve()
	if err != nil {
		return err
	}
	if err := p.register(endpoint); err != nil {
		return err
	}
	fmt.Println("registered")
	awaitNewKubelet(watcher.Events)
	return fmt.Errorf("there is a new kubelet")
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: deviceplugin RESOURCE ID...")
	}
	log.Fatal(run(os.Args[1], os.Args[2:]))
}
