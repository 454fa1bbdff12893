# SPDX-License-Identifier: Apache-2.0
"""A WebSocket server that pings every 100 ms, echoes, and answers "slow" once its backend does. Port 8701 speaks TLS."""
import asyncio
import ssl
import sys
import urllib.request

import websockets


async def serve(websocket):
    async for message in websocket:
        if message == "slow":
            await asyncio.to_thread(lambda: urllib.request.urlopen("http://127.0.0.1:9000/slow").read())
        await websocket.send("answer to " + message)


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    async with websockets.serve(serve, None, 8700, ping_interval=0.1), \
            websockets.serve(serve, None, 8701, ping_interval=None, ssl=context):
        await asyncio.Future()


asyncio.run(main())
