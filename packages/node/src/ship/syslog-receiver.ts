import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6, type NetConnectOpts, Socket } from "node:net";
import type { Writable } from "node:stream";
import { SandboxError } from "@sandpiper/core";
import type { Receiver } from "./receiver.ts";
import type { ShippedRecord } from "./shipped-record.ts";
import { syslogMessage } from "./syslog-message.ts";

const UDP_PORT = 514;
const TCP_PORT = 601;

/** Ships to `unix:///path`, `udp://host:port` or `tcp://host:port`. */
export function createSyslogReceiver(address: string): Receiver {
  const url = new URL(address);
  if (url.protocol === "unix:") return new StreamReceiver({ path: decodeURIComponent(url.pathname) });
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = Number(url.port || (url.protocol === "udp:" ? UDP_PORT : TCP_PORT));
  return url.protocol === "udp:" ? new DatagramReceiver(host, port) : new StreamReceiver({ host, port });
}

/** One datagram a message, as in RFC 5426. A receiver that is down loses them unnoticed. */
class DatagramReceiver implements Receiver {
  readonly name = "syslog";
  readonly #host: string;
  readonly #port: number;
  #socket: DatagramSocket | undefined;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  async send(records: readonly ShippedRecord[]): Promise<number> {
    this.#socket ??= createSocket(isIPv6(this.#host) ? "udp6" : "udp4").on("error", () => {});
    const socket = this.#socket;
    for (const record of records) {
      await new Promise<void>((resolve, reject) => {
        socket.send(syslogMessage(record), this.#port, this.#host, (error) => (error ? reject(error) : resolve()));
      });
    }
    return 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.close();
  }
}

/** Messages with their length in front, as in RFC 6587, over one connection. */
class StreamReceiver implements Receiver {
  readonly name = "syslog";
  readonly #target: NetConnectOpts;
  #socket: Socket | undefined;
  #local: LocalSyslog | undefined;

  constructor(target: NetConnectOpts) {
    this.#target = target;
  }

  async send(records: readonly ShippedRecord[], signal: AbortSignal): Promise<number> {
    const messages = records.map(syslogMessage);
    if (this.#socket === undefined || this.#socket.destroyed) await this.#connect(signal);
    if (this.#local !== undefined) await this.#local.send(messages);
    else await written(this.#socket as Socket, messages.map((text) => `${text.length} ${text}`).join(""), signal);
    return 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.end();
    this.#socket?.destroySoon();
    await this.#local?.[Symbol.asyncDispose]();
  }

  async #connect(signal: AbortSignal): Promise<void> {
    if (this.#local?.isOpen) return;
    const socket = new Socket();
    // Errors after the connection show in the next write.
    socket.on("error", () => {});
    try {
      socket.connect(this.#target);
      await once(socket, "connect", { signal });
      // Nothing is read from a receiver, but its end must be noticed.
      socket.resume();
      this.#socket = socket;
    } catch (thrown) {
      socket.destroy();
      const isDatagram = (thrown as NodeJS.ErrnoException).code === "EPROTOTYPE" && "path" in this.#target;
      if (!isDatagram) throw thrown;
      this.#local = new LocalSyslog(this.#target.path as string);
    }
  }
}

/** Node.js has no datagram sockets of the local machine, such as /dev/log: the program `logger` of util-linux sends to them. */
class LocalSyslog implements AsyncDisposable {
  readonly #child: ChildProcess;

  constructor(path: string) {
    const options = ["--socket", path, "--socket-errors=on", "--rfc5424=notq", "--prio-prefix", "--tag", "sandpiper"];
    this.#child = spawn("logger", [...options, "--size", "64KiB"], { stdio: ["pipe", "ignore", "ignore"] });
    this.#child.on("error", () => {});
    this.#child.stdin?.on("error", () => {});
  }

  get isOpen(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined;
  }

  async send(messages: readonly string[]): Promise<void> {
    if (!this.isOpen) throw loggerEnded();
    // The program writes its own header: only the priority and the text are passed on.
    const lines = messages.map((message) => message.replace(/^(<\d+>)[^{]*/, "$1"));
    await written(this.#child.stdin as Writable, `${lines.join("\n")}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isOpen) return;
    const exited = once(this.#child, "exit");
    this.#child.stdin?.end();
    await exited;
  }
}

async function written(stream: Writable, text: string, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      stream.destroy();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    stream.write(text, (error) => {
      signal?.removeEventListener("abort", abort);
      if (error) reject(error);
      else resolve();
    });
  });
}

function loggerEnded(): SandboxError {
  return new SandboxError("ship_failed", {
    message: 'the program "logger", which sends to the local syslog socket, cannot be started or has ended',
    hint: "install util-linux (bsdutils on Debian), or set ship.syslog to a udp:// or tcp:// address",
  });
}
