import type { Bindings } from "../forward/request-forwarder.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { McpEndpoint } from "./mcp-endpoint.ts";

/** Loads the MCP endpoint at its first request, so that a node without MCP clients starts faster. */
export class LazyEndpoint {
  readonly #load: () => Promise<McpEndpoint>;
  #endpoint: Promise<McpEndpoint> | undefined;
  #loaded: McpEndpoint | undefined;
  #isClosed = false;

  constructor(load: () => Promise<McpEndpoint>) {
    this.#load = load;
  }

  get sessionCount(): number {
    return this.#loaded?.sessionCount ?? 0;
  }

  async serve(request: Request, context: RequestContext, bindings: Bindings): Promise<Response> {
    this.#endpoint ??= this.#load();
    const endpoint = await this.#endpoint;
    this.#loaded = endpoint;
    if (this.#isClosed) await endpoint.close();
    return await endpoint.serve(request, context, bindings);
  }

  /** Ends all sessions and accepts no new ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#endpoint)?.close();
  }
}
