import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pack } from "tar-stream";
import { expect, it } from "vitest";
import { rootLayer } from "../host/testing/root-layer.ts";
import { sharedDirectory } from "../host/testing/shared.ts";
import { createQemuFixture } from "./testing/fixture.ts";

const directory = sharedDirectory("archive");

async function tar(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of Object.entries(files)) archive.entry({ name, mtime: new Date(0) }, content);
  archive.finalize();
  return await buffer(archive);
}

it("boots a machine from a saved container image, with its layers applied in order", async () => {
  await using fixture = await createQemuFixture();
  const lower = await readFile(await rootLayer("base"));
  const upper = await tar({ "etc/second": "from the second layer", "usr/bin/.wh.yes": "" });
  const layers = { "lower/layer.tar": lower, "upper/layer.tar": upper };
  const manifest = JSON.stringify([{ Config: "config.json", Layers: Object.keys(layers) }]);
  const rootfs = join(directory, "image.tar");
  await writeFile(rootfs, await tar({ ...layers, "config.json": "{}", "manifest.json": manifest }));
  await using sandbox = await fixture.create({ rootfs });
  const { stdout } = await sandbox.exec("cat /etc/second; ls /usr/bin | grep -c '^yes$'; id -un");
  expect(stdout).toBe("from the second layer0\nuser\n");
});
