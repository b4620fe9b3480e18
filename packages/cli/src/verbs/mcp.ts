import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { containerFrom, containerOptions, dockerFrom } from "../options/container-options.ts";
import { parseDuration } from "../options/duration-option.ts";
import { shapeFrom, shapeOptions } from "../options/sandbox-options.ts";

export const mcpVerb: Verb = {
  name: "mcp",
  usage: "[OPTIONS]",
  summary: "offer sandboxes to a language model, over MCP on standard input and output",
  options: [
    ...shapeOptions,
    ...containerOptions,
    { name: "idle-timeout", value: "TIME", summary: "destroy sandboxes that were not used for this time (30m)" },
    { name: "keep", summary: "leave sandboxes to the node when the client has gone" },
    { name: "embedded", summary: "in this very program, even if a node runs" },
  ],
  words: [],
  details: `
For programs that speak the Model Context Protocol and start their servers themselves. Limits, provider and image are those of
sandboxes for which the model asks for nothing else. Where no node runs, sandboxes are made in this very program.
All of them are gone when the client has gone, unless it asked for one to be kept.

Example, as such a program's configuration:
  { "mcpServers": { "sandpiper": { "command": "sandpiper", "args": ["mcp"] } } }`,
  async run(arguments_) {
    const container = containerFrom(arguments_);
    const { image, ...rest } = container ?? {};
    const shape = shapeFrom(arguments_);
    const defaults = {
      ...shape,
      image,
      container: Object.keys(rest).length === 0 ? undefined : rest,
    };
    const idleTimeoutMs = parseDuration(arguments_, "idle-timeout");
    const onError = (thrown: unknown) => process.stderr.write(`sandpiper: ${messageOf(thrown)}\n`);
    const { Interruption } = await import("../command/interruption.ts");
    using interruption = new Interruption();
    const { openClient } = await import("../mcp/open-client.ts");
    const { allowedPaths = [], networks } = dockerFrom(container) ?? {};
    await using node = await openClient({
      isEmbedded: arguments_.has("embedded"),
      defaultProvider: shape.provider,
      docker: { allowedPaths: [...allowedPaths], ...(networks && { networks: [...networks] }) },
      onError,
    });
    if (arguments_.has("keep") && !node.outlives) throw cannotKeep();
    const [{ McpSession }, { serveOverStdio }] = await Promise.all([
      import("@sandpiper/mcp"),
      import("@sandpiper/mcp/stdio"),
    ]);
    const keep = node.outlives ? (arguments_.has("keep") ? "always" : "asked") : "never";
    await using session = new McpSession({ client: node.client, defaults, idleTimeoutMs, keep, onError });
    await serveOverStdio({ session, signal: interruption.signal, onError });
    return interruption.exitCode ?? 0;
  },
};

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function cannotKeep(): Error {
  return usageError("--keep needs a node, and none runs", "start one with: sandpiper up");
}
