import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type RequestListener, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Provider } from "@sandpiper/core";
import type { SandboxResource } from "@sandpiper/protocol";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import type { NodeConfigOptions } from "../../config/node-config.ts";
import { type RunningNode, startNode } from "../../start/start-node.ts";
import { createLogger } from "../../telemetry/logger.ts";

/** The port of the test's server inside its sandbox. */
export const PORT = 8000;

export interface AskOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders | readonly string[];
  readonly body?: string | Uint8Array;
  /** The address of the node to ask. */
  readonly url?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  readonly rawHeaders: readonly string[];
}

/** Simulated sandboxes that outlive the node's process. */
export interface MortalProvider extends Provider {
  die(): MortalProvider;
}

/** A node with simulated sandboxes, whose servers are the test's own. */
export class PreviewBed implements AsyncDisposable {
  readonly #undo = new AsyncDisposableStack();
  readonly home = mkdtempSync(join(tmpdir(), "sandpiper-previews-"));
  readonly #config: NodeConfigOptions;
  #provider: MortalProvider;
  node!: RunningNode;
  key = "";

  private constructor(provider: MortalProvider, config: NodeConfigOptions) {
    this.#provider = provider;
    this.#config = config;
    this.#undo.defer(() => rmSync(this.home, { recursive: true, force: true }));
  }

  static async start(provider: MortalProvider, config: NodeConfigOptions = {}): Promise<PreviewBed> {
    const bed = new PreviewBed(provider, config);
    await bed.#startNode();
    bed.#undo.defer(() => bed.node.stop());
    return bed;
  }

  async restart(): Promise<void> {
    await this.node.stop();
    this.#provider = this.#provider.die();
    await this.#startNode();
  }

  async #startNode(): Promise<void> {
    const config = parseNodeConfig({ home: this.home, port: 0, stopGraceMs: 0, ...this.#config });
    const logger = createLogger({ logLevel: "silent", logFormat: "json" });
    this.node = await startNode(config, { logger, providers: [this.#provider] });
    // Only the first node of a cluster has one.
    if (existsSync(this.node.apiKeyFile)) this.key = readFileSync(this.node.apiKeyFile, "utf8").trim();
  }

  get port(): string {
    return new URL(this.node.url).port;
  }

  hostOf({ id }: { readonly id: string }, port: number = PORT): string {
    return `${port}-${id}.localhost:${this.port}`;
  }

  /** A sandbox in which `listener` serves the port. */
  async sandbox(listener: RequestListener, body: object = {}): Promise<SandboxResource> {
    const sandbox = await this.create(body);
    await this.serve(sandbox, createServer({ keepAliveTimeout: 60_000 }, listener));
    return sandbox;
  }

  /** A sandbox in which each connection to the port is handled by `onConnection`. */
  async rawSandbox(onConnection: (socket: Socket) => void): Promise<SandboxResource> {
    const sandbox = await this.create();
    await this.serve(sandbox, createTcpServer({ allowHalfOpen: true }, onConnection));
    return sandbox;
  }

  async serve({ id }: { readonly id: string }, server: Server, port = PORT): Promise<void> {
    server.listen(0, "127.0.0.1");
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.once("close", () => sockets.delete(socket));
    });
    await once(server, "listening");
    this.#undo.defer(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const bytes = String((server.address() as AddressInfo).port);
    await this.api("POST", `/v1/sandboxes/${id}/files/mkdir`, { path: "/ports", parents: true });
    await this.api("PUT", `/v1/sandboxes/${id}/files?path=/ports/${port}`, bytes);
  }

  async create(body: object = {}): Promise<SandboxResource> {
    return (await this.api("POST", "/v1/sandboxes", { provider: "mock", ...body })) as SandboxResource;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the answers of many operations
  async api(method: string, path: string, body?: unknown, key = this.key): Promise<any> {
    const isText = typeof body === "string";
    const response = await fetch(this.node.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(!isText && { "content-type": "application/json" }) },
      body: body === undefined ? null : isText ? body : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Sends a request with any host, as a browser or program would. */
  open(host: string, path: string, { method = "GET", headers = {}, url = this.node.url }: AskOptions = {}) {
    const { hostname, port } = new URL(url);
    const sent = Array.isArray(headers) ? ["host", host, ...headers] : { host, ...headers };
    return request({ hostname, port, path, method, headers: sent, agent: false });
  }

  async ask(host: string, path: string, options: AskOptions = {}): Promise<Answer> {
    const outgoing = this.open(host, path, options);
    outgoing.end(options.body);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const { statusCode: status = 0, headers, rawHeaders } = incoming;
    return { status, headers, rawHeaders, text: String(await incoming.toArray().then((all) => Buffer.concat(all))) };
  }

  /** Asks with the node's first key. */
  askAsOwner(sandbox: { readonly id: string }, path: string, options: AskOptions = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.key}`, ...(options.headers as OutgoingHttpHeaders) };
    return this.ask(this.hostOf(sandbox), path, { ...options, headers });
  }

  /** Asks in path mode with the node's first key. */
  askByPath({ id }: { readonly id: string }, path: string, options: AskOptions = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.key}`, ...(options.headers as OutgoingHttpHeaders) };
    return this.ask(`127.0.0.1:${this.port}`, `/v1/sandboxes/${id}/ports/${PORT}${path}`, { ...options, headers });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#undo.disposeAsync();
  }
}
