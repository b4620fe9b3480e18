import { describe, expect, it } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

describe("expose_port", () => {
  it("returns a link, and says that nothing listens yet", async () => {
    const { call } = await connectMcp();
    const { text, structured } = await call("expose_port", { port: 8000, path: "/docs" });
    expect(structured).toMatchObject({ is_public: false, is_listening: false, listening_ports: [] });
    expect(structured.url).toMatch(/\.localhost\/docs\?sandpiper_link=/);
    expect(text).toContain("Nothing listens on port 8000 yet");
  });

  it("opens the port to everyone only on request", async () => {
    const { call } = await connectMcp();
    const { structured } = await call("expose_port", { port: 8000, public: true });
    expect(structured).toMatchObject({ is_public: true, url: expect.not.stringContaining("sandpiper_link") });
  });

  it("refuses a port that is none", async () => {
    const { refusal } = await connectMcp();
    expect(await refusal("expose_port", { port: 0 })).toMatch(/port/);
  });
});
