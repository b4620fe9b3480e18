import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Pack, pack } from "tar-stream";
import { type RootVariant, rootLayer } from "../../host/testing/root-layer.ts";
import type { Engine } from "../engine/engine.ts";
import { CREDENTIAL } from "./registry.ts";

export interface TestImageOptions {
  /** `sandpiper-test:latest` by default. */
  readonly name?: string;
  /** Its content; `base` by default. */
  readonly variant?: RootVariant;
  readonly user?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly entrypoint?: readonly string[];
  /** A shell by default. */
  readonly command?: readonly string[];
  /** The architecture that it claims; the engine's by default. */
  readonly architecture?: string;
  /** Makes another image with the same content. */
  readonly label?: string;
}

/** Loads a test image into an engine, and returns its name. */
export async function importTestImage(engine: Engine, options: TestImageOptions = {}): Promise<string> {
  const { name, archive } = await testImageArchive({ architecture: engine.info.architecture, ...options });
  await engine.call(`load image ${name}`, async (docker) => {
    const answer = await docker.loadImage(archive as unknown as NodeJS.ReadableStream, { quiet: true });
    for await (const line of answer) {
      if (String(line).includes('"error"')) throw new Error(String(line));
    }
  });
  return name;
}

/** A test image as an archive for `docker load`. */
export async function testImageArchive(options: TestImageOptions): Promise<{ name: string; archive: Pack }> {
  const name = options.name ?? "sandpiper-test:latest";
  const layer = await readFile(await rootLayer(options.variant ?? "base"));
  const config = JSON.stringify(imageConfig(layer, options));
  const configName = `${sha256(config)}.json`;
  const manifest = [{ Config: configName, RepoTags: [name], Layers: ["layer.tar"] }];
  const files = { "manifest.json": JSON.stringify(manifest), [configName]: config, "layer.tar": layer };
  return { name, archive: packArchive(files) };
}

function imageConfig(layer: Buffer, options: TestImageOptions): object {
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", ...options.env };
  return {
    architecture: options.architecture ?? "amd64",
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config: {
      Cmd: options.command ?? ["/bin/sh"],
      Env: Object.entries(env).map(([variable, value]) => `${variable}=${value}`),
      ...(options.user === undefined ? {} : { User: options.user }),
      ...(options.entrypoint === undefined ? {} : { Entrypoint: options.entrypoint }),
      ...(options.label === undefined ? {} : { Labels: { test: options.label } }),
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "test" }],
  };
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Pushes an image to a registry, and removes it from the engine. */
export async function pushTestImage(engine: Engine, name: string, options: TestImageOptions = {}): Promise<void> {
  await importTestImage(engine, { ...options, name });
  const image = engine.docker.getImage(name);
  const answer = await image.push({ authconfig: { ...CREDENTIAL, serveraddress: "" } } as object);
  let output = "";
  for await (const piece of answer) output += String(piece);
  if (output.includes('"error"')) throw new Error(`could not push ${name}: ${output.slice(-500)}`);
  await image.remove({ force: true });
}

/** Packs a tar archive from memory. */
export function packArchive(files: Readonly<Record<string, string | Buffer>>): Pack {
  const archive = pack();
  for (const [name, content] of Object.entries(files))
    archive.entry({ name, mtime: new Date(0) }, Buffer.from(content));
  archive.finalize();
  return archive;
}
