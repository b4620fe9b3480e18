import { Interruption } from "../command/interruption.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { containerFrom, containerOptions, dockerFrom, splitContainer } from "../options/container-options.ts";
import { networkFrom } from "../options/network-options.ts";
import { shapeFrom, shapeOptions } from "../options/sandbox-options.ts";
import { embeddedOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";

export const mcpVerb: Verb = {
  name: "mcp",
  summary: "serve sandboxes to a language model over MCP",
  options: [
    ...shapeOptions,
    ...containerOptions,
    {
      name: "idle-timeout",
      value: "DURATION",
      default: "30m",
      summary: "destroy a sandbox after DURATION without activity; background processes do not count as activity",
    },
    { name: "keep", summary: "leave the sandboxes to the node when the client disconnects" },
    embeddedOption,
  ],
  details: `Speaks the Model Context Protocol on standard input and output, for clients that start their own servers. The options
set the defaults for sandboxes that the model creates. Without a node, the sandboxes run in this process.

All sandboxes are destroyed when the client disconnects, unless the model asked to keep one or you set --keep.`,
  examples: ['{ "mcpServers": { "sandpiper": { "command": "sandpiper", "args": ["mcp"] } } }'],
  learnMore: "docs/mcp.md",
  async run(arguments_) {
    const container = containerFrom(arguments_);
    const shape = shapeFrom(arguments_);
    const defaults = { ...shape, ...splitContainer(container), network: await networkFrom(arguments_) };
    const idleTimeoutMs = parseDuration(arguments_, "idle-timeout");
    const onError = (thrown: unknown) => process.stderr.write(`sandpiper: ${messageOf(thrown)}\n`);
    using interruption = new Interruption();
    const { openClient } = await import("../mcp/open-client.ts");
    const { allowedPaths = [], networks, hostPorts = [], hostAddresses = [] } = dockerFrom(container) ?? {};
    await using node = await openClient({
      isEmbedded: arguments_.has("embedded"),
      defaultProvider: shape.provider,
      docker: {
        allowedPaths: [...allowedPaths],
        hostPorts: [...hostPorts],
        hostAddresses: [...hostAddresses],
        ...(networks && { networks: [...networks] }),
      },
      onError,
    });
    if (arguments_.has("keep") && !node.outlives) {
      throw usageError("mcp: --keep needs a node, but none is running", 'start one with "sandpiper up"');
    }
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
