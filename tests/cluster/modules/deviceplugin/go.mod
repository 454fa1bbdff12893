module lull.test/deviceplugin

go 1.26.8

require (
	github.com/fsnotify/fsnotify v1.10.1
	google.golang.org/grpc v1.84.0
	k8s.io/kubelet v0.37.2
)

require (
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
