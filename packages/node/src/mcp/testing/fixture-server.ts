import { completable, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { z } from "zod";
import { IMAGE } from "./fixture-content.ts";
import { registerFixtureTools } from "./fixture-tools.ts";

const description = "for the conformance package";

/** The server that the conformance package's scenarios expect. */
export function createFixtureServer(): McpServer {
  const capabilities = { logging: {}, resources: { subscribe: true } };
  const server = new McpServer({ name: "conformance-fixture", version: "1.0.0" }, { capabilities });
  registerFixtureTools(server);
  registerResources(server);
  registerPrompts(server);
  return server;
}

function registerResources(server: McpServer): void {
  server.registerResource("static-text", "test://static-text", { mimeType: "text/plain" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text: "This is the content of the static text resource." }],
  }));
  server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "image/png", blob: IMAGE }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, {}, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true }) }],
  }));
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

function registerPrompts(server: McpServer): void {
  const userText = (text: string) => ({ role: "user" as const, content: { type: "text" as const, text } });
  server.registerPrompt("test_simple_prompt", { description }, () => ({
    messages: [userText("This is a simple prompt for testing.")],
  }));
  const argsSchema = z.object({ arg1: completable(z.string(), () => ["paris", "park"]), arg2: z.string() });
  server.registerPrompt("test_prompt_with_arguments", { description, argsSchema }, ({ arg1, arg2 }) => ({
    messages: [userText(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  }));
  const withUri = { description, argsSchema: z.object({ resourceUri: z.string() }) };
  server.registerPrompt("test_prompt_with_embedded_resource", withUri, ({ resourceUri: uri }) => {
    const resource = { uri, mimeType: "text/plain", text: "Embedded resource content for testing." };
    return { messages: [{ role: "user", content: { type: "resource", resource } }, userText("Please process it.")] };
  });
  server.registerPrompt("test_prompt_with_image", { description }, () => ({
    messages: [
      { role: "user", content: { type: "image", data: IMAGE, mimeType: "image/png" } },
      userText("Look at it."),
    ],
  }));
}
