import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CallToolResult, Client, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createProvider } from "@sandpiper/node";
import { expect, onTestFinished } from "vitest";
import { findLeftovers } from "../e2e/leftovers.ts";
import { sandpiper } from "../e2e/run-cli.ts";

export interface Answer {
  readonly isError: boolean;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a tool answers is checked by its output schema
  readonly structured: any;
}

/** A home for MCP servers without a node; everything in it is removed after the test, also when the test fails. */
export class StdioBed {
  readonly home = mkdtempSync(join(tmpdir(), "sandpiper-mcp-"));
  readonly #seen = new Set<string>();

  constructor() {
    onTestFinished(() => this.#clear());
  }

  /** An environment without a node. */
  get env(): Record<string, string> {
    const { SANDPIPER_URL, SANDPIPER_API_KEY, ...rest } = process.env as Record<string, string>;
    return { ...rest, SANDPIPER_HOME: this.home };
  }

  async connect(args: readonly string[] = [], options: ClientOptions = {}): Promise<StdioClient> {
    const client = await StdioClient.start({ args, env: this.env, options });
    client.onSandbox = (id) => this.#seen.add(id);
    return client;
  }

  saw(...ids: readonly string[]): void {
    for (const id of ids) this.#seen.add(id);
  }

  /** Processes, mounts, cgroups and directories of the sandboxes that were seen, and of the nodes that ran them. */
  left(): string[] {
    return [...findLeftovers(this.home, [...this.#seen]), ...this.nodeHomes().map((name) => `home ${name}`)];
  }

  nodeHomes(): string[] {
    const directory = join(this.home, "mcp");
    return existsSync(directory) ? readdirSync(directory) : [];
  }

  async expectNothingLeft(): Promise<void> {
    await expect.poll(() => this.left(), { interval: 100 }).toEqual([]);
  }

  async #clear(): Promise<void> {
    for (const name of this.nodeHomes()) {
      const provider = createProvider("gvisor", { home: join(this.home, "mcp", name, "node") });
      for (const { id } of await provider.list()) await provider.remove(id);
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}

interface StartOptions {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly options?: ClientOptions;
}

/** The official client, with `sandpiper mcp` as its server. */
export class StdioClient implements AsyncDisposable {
  readonly mcp: Client;
  readonly #transport: StdioClientTransport;
  onSandbox: (id: string) => void = () => {};

  private constructor(mcp: Client, transport: StdioClientTransport) {
    this.mcp = mcp;
    this.#transport = transport;
    onTestFinished(() => this.close());
  }

  static async start({ args, env, options }: StartOptions): Promise<StdioClient> {
    const transport = new StdioClientTransport({ command: sandpiper, args: ["mcp", ...args], env, stderr: "inherit" });
    const mcp = new Client({ name: "test", version: "1.0.0" }, options);
    await mcp.connect(transport);
    return new StdioClient(mcp, transport);
  }

  /** The server's process id. */
  get pid(): number {
    return this.#transport.pid as number;
  }

  async call(name: string, input: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
    const result = (await this.mcp.callTool({ name, arguments: { ...input } })) as CallToolResult;
    const text = result.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
    const structured = result.structuredContent as Record<string, unknown> | undefined;
    if (typeof structured?.["sandbox_id"] === "string") this.onSandbox(structured["sandbox_id"]);
    return { isError: result.isError === true, text, structured };
  }

  async close(): Promise<void> {
    await this.mcp.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
