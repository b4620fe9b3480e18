import { z } from "zod";
import { defineSandboxTool } from "../tool/tool.ts";

const HOUR_MS = 3_600_000;

export const exposePort = defineSandboxTool({
  name: "expose_port",
  title: "Expose a port",
  description:
    "Returns a URL that opens a port of a sandbox in a browser, for a server that start_process has started. The URL is a link that expires; with public, anyone who knows the URL can use it until the sandbox ends.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  input: {
    port: z.int().min(1).max(65_535).describe("The TCP port on which the server listens."),
    path: z
      .string()
      .regex(/^\/[\x21-\x7e]*$/)
      .max(2048)
      .optional()
      .describe("The page to open, such as /docs; the default is /."),
    expires_in_minutes: z
      .int()
      .min(1)
      .max(30 * 24 * 60)
      .optional()
      .describe("How long the link is valid; the default is 60 minutes."),
    public: z.boolean().optional().describe("Open the port to everyone; use it only if the user asks for it."),
  },
  output: {
    url: z.string(),
    is_public: z.boolean(),
    is_listening: z.boolean().describe("Whether a program listens on the port now."),
    listening_ports: z.array(z.int()),
  },
  async run({ port, path, expires_in_minutes, public: isPublic }, { sandbox, signal }) {
    const expiresInMs = expires_in_minutes === undefined ? HOUR_MS : expires_in_minutes * 60_000;
    const access = isPublic ? { public: true } : { expiresInMs };
    const url = await sandbox.url(port, { ...access, path, signal });
    const listening_ports = (await sandbox.ports({ signal })).map((open) => open.port);
    const is_listening = listening_ports.includes(port);
    const others = listening_ports.length === 0 ? "no port" : `only ${listening_ports.join(", ")}`;
    const warning = is_listening ? "" : `\nNothing listens on port ${port} yet: the sandbox listens on ${others}.`;
    return {
      text: `${url}${warning}`,
      structured: { url, is_public: isPublic ?? false, is_listening, listening_ports },
    };
  },
});
