import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { Presence } from "./presence.ts";

const directory = freshDirectory("presence");

it("connects at a slow pace while Firecracker closes its connections, and ends with the process", async () => {
  const path = join(directory, "api.sock");
  const accepted: Socket[] = [];
  const server = createServer((socket) => void accepted.push(socket.on("error", () => {}).destroy())).listen({ path });
  await once(server, "listening");
  const presence = new Presence(path);
  await expect.poll(() => accepted.length, { timeout: 5000 }).toBe(3);
  // Without a pause there would be thousands by now.
  expect(accepted.length).toBeLessThan(10);
  server.close();
  await rm(path, { force: true });
  await presence.ended;
});
