"""A server for previews: pages, uploads, downloads, server-sent events and a WebSocket echo, with the standard library only."""
import base64, hashlib, json, struct, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PIECE = bytes(range(256)) * 256


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.echo()
        if self.path.startswith("/bytes/"):
            return self.send_bytes(int(self.path.split("/")[2]))
        if self.path == "/events":
            return self.send_events()
        self.answer(json.dumps({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}))

    def do_POST(self):
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        while left > 0:
            piece = self.rfile.read(min(left, 65536))
            digest.update(piece)
            left -= len(piece)
        self.answer(digest.hexdigest())

    def answer(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_bytes(self, count):
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        for _ in range(count // len(PIECE)):
            self.wfile.write(PIECE)

    def send_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number in range(3):
            self.wfile.write(f"data: {number}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.05)
        self.close_connection = True

    def echo(self):
        accept = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + MAGIC).digest())
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept.decode())):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            opcode, size = head[0] & 15, head[1] & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask, data = self.rfile.read(4), self.rfile.read(size)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
            self.wfile.write(bytes([128 | opcode]) + length + data)
            if opcode == 8:
                return


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
