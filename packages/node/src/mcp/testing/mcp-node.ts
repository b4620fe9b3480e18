import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, Provider } from "@sandpiper/core";
import type { CreatedKey, CreateKeyBody } from "@sandpiper/protocol";
import { Client } from "@sandpiper/sdk";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import type { NodeConfig, NodeConfigOptions } from "../../config/node-config.ts";
import { startNode } from "../../start/start-node.ts";
import { createLogger } from "../../telemetry/logger.ts";

export interface McpNodeOptions {
  readonly provider: Provider;
  readonly config?: NodeConfigOptions | undefined;
  readonly clock?: Clock | undefined;
}

export interface PostOptions {
  readonly key?: string | undefined;
  readonly session?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const ACCEPT = "application/json, text/event-stream";

export const initialize = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

/** The fields that tests read. */
export interface McpAnswer {
  readonly result: {
    readonly tools: readonly { readonly name: string }[];
    readonly content: readonly { readonly text: string }[];
    readonly isError?: boolean;
  };
}

export type McpNode = Awaited<ReturnType<typeof startMcpNode>>;

/** Starts a complete node with the given provider. */
export async function startMcpNode({ provider, config: overrides, clock }: McpNodeOptions) {
  await using undo = new AsyncDisposableStack();
  const home = mkdtempSync(join(tmpdir(), "sandpiper-mcp-"));
  undo.defer(() => rmSync(home, { recursive: true, force: true }));
  // The configuration's schema does not allow the mock provider.
  const config = { ...parseNodeConfig({ home, port: 0, ...overrides }), defaultProvider: provider.name } as NodeConfig;
  const logger = createLogger({ logLevel: "silent", logFormat: "json" });
  const node = undo.use(await startNode(config, { logger, providers: [provider], clock }));
  const adminKey = readFileSync(node.apiKeyFile, "utf8").trim();
  const admin = undo.use(new Client({ url: node.url, apiKey: adminKey }));
  const url = `${node.url}/mcp`;
  const headersOf = ({ key = adminKey, session, headers }: PostOptions): Record<string, string> => ({
    ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
    ...(session === undefined ? {} : { "mcp-session-id": session }),
    accept: ACCEPT,
    "content-type": "application/json",
    ...headers,
  });
  const post = (body: unknown, options: PostOptions = {}) =>
    fetch(url, {
      method: "POST",
      headers: headersOf(options),
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const owned = undo.move();
  return {
    url,
    admin,
    adminKey,
    stop: () => node.stop(),
    post,
    makeKey: (body: Partial<CreateKeyBody> = {}): Promise<CreatedKey> => admin.keys.create({ name: "test", ...body }),
    send: (method: string, options: PostOptions = {}) => fetch(url, { method, headers: headersOf(options) }),
    /** Opens a session and returns its id. */
    async open(options: PostOptions = {}): Promise<string> {
      const response = await post(initialize, options);
      await response.text();
      const id = response.headers.get("mcp-session-id");
      if (id === null) throw new Error(`no session: ${response.status}`);
      return id;
    },
    /** The response to one request of a session. */
    async call(method: string, params: object, options: PostOptions): Promise<McpAnswer> {
      const response = await post({ jsonrpc: "2.0", id: 1, method, params }, options);
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
      const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
      return JSON.parse(lines.at(-1)?.slice("data: ".length) ?? "");
    },
    async sandboxIds(): Promise<string[]> {
      const ids: string[] = [];
      for await (const { id } of admin.sandboxes.list()) ids.push(id);
      return ids;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The status and the error of a refused request. */
export async function refusalOf(response: Response) {
  const { error } = (await response.json()) as { error: { code: number; message: string; data?: { reason: string } } };
  return { status: response.status, code: error.code, message: error.message, reason: error.data?.reason };
}
