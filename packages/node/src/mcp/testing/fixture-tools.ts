import { setTimeout as sleep } from "node:timers/promises";
import { type CallToolResult, fromJsonSchema, type McpServer, type ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { IMAGE, SOUND } from "./fixture-content.ts";

const description = "for the conformance package";
const text = (words: string) => ({ type: "text" as const, text: words });
const image = { type: "image" as const, data: IMAGE, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, words: string) => ({
  type: "resource" as const,
  resource: { uri, mimeType, text: words },
});

/** The tools without arguments. The conformance package defines them. */
const plainTools: Readonly<Record<string, (ctx: ServerContext) => CallToolResult | Promise<CallToolResult>>> = {
  test_simple_text: () => ({ content: [text("This is a simple text response for testing.")] }),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: SOUND, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({
    content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  }),
  test_multiple_content_types: () => ({
    content: [
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  async test_tool_with_logging({ mcpReq }) {
    for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", line);
    }
    return { content: [text("done")] };
  },
  async test_tool_with_progress({ mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken === undefined) break;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    return { content: [text("done")] };
  },
  async test_reconnection({ http }) {
    http?.closeSSE?.();
    await sleep(100);
    return { content: [text("done")] };
  },
  async test_elicitation_sep1034_defaults({ mcpReq }) {
    const properties = {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    };
    return await asked(mcpReq, properties);
  },
  async test_elicitation_sep1330_enums({ mcpReq }) {
    const options = ["option1", "option2", "option3"];
    const titled = ["First", "Second", "Third"].map((title, index) => ({ const: `value${index + 1}`, title }));
    const properties = {
      untitledSingle: { type: "string", enum: options },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    };
    return await asked(mcpReq, properties);
  },
};

type Request = ServerContext["mcpReq"];

async function asked(
  mcpReq: Request,
  properties: Readonly<Record<string, object>>,
  message = "?",
): Promise<CallToolResult> {
  // Sent as part of this call. Otherwise it would use the client's own stream, which may not be open yet.
  const params = { mode: "form", message, requestedSchema: { type: "object", properties } };
  const answer = await mcpReq.send({ method: "elicitation/create", params });
  return { content: [text(`Elicitation completed: ${JSON.stringify(answer)}`)] };
}

export function registerFixtureTools(server: McpServer): void {
  const none = z.object({});
  for (const [name, run] of Object.entries(plainTools)) {
    server.registerTool(name, { description, inputSchema: none }, (_, ctx) => run(ctx));
  }
  server.registerTool(
    "test_sampling",
    { description, inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => {
      const messages = [{ role: "user" as const, content: text(prompt) }];
      const answer = await ctx.mcpReq.requestSampling({ messages, maxTokens: 100 });
      return { content: [text(`LLM response: ${JSON.stringify(answer.content)}`)] };
    },
  );
  server.registerTool(
    "test_elicitation",
    { description, inputSchema: z.object({ message: z.string() }) },
    ({ message }, ctx) => asked(ctx.mcpReq, { username: { type: "string" }, email: { type: "string" } }, message),
  );
  const inputSchema = fromJsonSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  });
  server.registerTool("json_schema_2020_12_tool", { description, inputSchema }, () => ({ content: [text("done")] }));
}
