import { connect } from "node:net";
import { text } from "node:stream/consumers";

/** A command that answers each connection to port 3000 with a line. */
export const SERVE = `exec python3 -c '
import socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"hello " + self.rfile.readline())
socketserver.ThreadingTCPServer(("0.0.0.0", 3000), Handler).serve_forever()'`;

/** The server's answer at an address; empty if it does not answer. */
export async function ask(address: string | undefined): Promise<string> {
  const [host, port] = String(address).split(":");
  const socket = connect({ host: String(host), port: Number(port) });
  socket.write("you\n");
  return await text(socket).catch(() => "");
}
