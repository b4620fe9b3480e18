import { createHash } from "node:crypto";
import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import type { NodeProcess } from "../node/node-process.ts";
import { PORT, startServer, Visitor } from "./preview-client.ts";

const SIZE_BYTES = 8 * 1024 * 1024;

export interface PreviewContract {
  readonly node: NodeProcess;
  readonly create: () => Promise<Sandbox>;
  readonly timeoutMs: number;
}

/** What previews do on every provider. */
export function describePreviews(provider: string, { node, create, timeoutMs }: PreviewContract): void {
  describe(`previews on ${provider}`, () => {
    it(
      "carry pages, events, WebSockets, uploads, downloads and raw connections, and wake a paused sandbox",
      async () => {
        await using sandbox = await create();
        await startServer(sandbox);
        const { url, apiKey } = node.started;
        const visitor = new Visitor(url, sandbox, { authorization: `Bearer ${apiKey}` });
        expect(JSON.parse((await visitor.get("/page?x=1")).text)).toMatchObject({ path: "/page?x=1" });
        expect((await visitor.get("/events")).text).toBe("data: 0\n\ndata: 1\n\ndata: 2\n\n");
        expect(await visitor.echo("hello")).toBe("hello");
        const bytes = Buffer.alloc(SIZE_BYTES, Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index)));
        const hash = createHash("sha256").update(bytes).digest("hex");
        expect((await visitor.get("/upload", bytes)).text).toBe(hash);
        expect(await visitor.hashOf(`/bytes/${SIZE_BYTES}`)).toBe(hash);
        expect((await new Visitor(url, sandbox, {}).get("/")).status).toBe(401);
        const connection = await sandbox.connect(PORT);
        await connection.write(new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"));
        expect(Buffer.concat(await Array.fromAsync(connection)).toString()).toMatch(/^HTTP\/1\.\d 200 /);
        if (sandbox.info.fidelity !== "memory") return;
        await sandbox.pause();
        expect((await visitor.get("/awake")).status).toBe(200);
      },
      timeoutMs,
    );
  });
}
