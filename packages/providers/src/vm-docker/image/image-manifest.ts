import { createHash } from "node:crypto";
import { SandboxError } from "@sandpiper/core";
import { parseImageReference } from "../../host/image-reference.ts";
import type { RegistryClient } from "./registry-client.ts";
import { damaged } from "./registry-error.ts";

/** A part of an image in a registry. */
export interface Descriptor {
  /** `sha256:` and 64 digits. */
  readonly digest: string;
  readonly size: number;
}

/** The parts of the image for this processor. */
export interface ImageManifest {
  /** Its digest is the image's id on an engine. */
  readonly config: Descriptor;
  /** The lowest first. */
  readonly layers: readonly Descriptor[];
}

interface IndexEntry extends Descriptor {
  readonly platform?: { readonly os?: string; readonly architecture?: string };
}

const INDEXES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];
const MANIFESTS = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_LAYERS = 256;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** Node.js names of processors, and their names in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** Finds the image that a reference names now. */
export async function findManifest(
  client: RegistryClient,
  reference: string,
  signal: AbortSignal,
): Promise<ImageManifest> {
  const { tag } = parseImageReference(reference);
  const found = await read(client, { reference, tag, signal });
  const { manifests } = found as { readonly manifests?: unknown };
  if (manifests === undefined) return parseManifest(reference, found);
  return parseManifest(reference, await read(client, { reference, tag: pickPlatform(reference, manifests), signal }));
}

interface ReadOptions {
  readonly reference: string;
  /** A tag or a digest. */
  readonly tag: string;
  readonly signal: AbortSignal;
}

async function read(client: RegistryClient, { reference, tag, signal }: ReadOptions): Promise<object> {
  const answer = await client.get(`manifests/${tag}`, { accept: [...INDEXES, ...MANIFESTS].join(", "), signal });
  const bytes = await readLimited(answer, reference);
  if (tag.includes(":") && `sha256:${createHash("sha256").update(bytes).digest("hex")}` !== tag) {
    throw damaged(reference, `a manifest with another digest than ${tag}`);
  }
  try {
    const parsed: unknown = JSON.parse(bytes.toString());
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {}
  throw damaged(reference, "a manifest that is not JSON");
}

async function readLimited(answer: Response, reference: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body ?? []) {
    size += piece.length;
    if (size > MAX_BYTES) throw damaged(reference, `a manifest of more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function pickPlatform(reference: string, manifests: unknown): string {
  const architecture = ARCHITECTURES[process.arch] ?? process.arch;
  const entries = Array.isArray(manifests) ? (manifests as readonly IndexEntry[]) : [];
  const found = entries.find(({ platform }) => platform?.os === "linux" && platform.architecture === architecture);
  if (found !== undefined && isDescriptor(found)) return found.digest;
  throw new SandboxError("wrong_architecture", {
    message: `image ${reference} is for other platforms only; this machine is linux/${architecture}`,
    hint: `use an image for linux/${architecture}`,
    details: { image: reference, found: "other platforms only", wanted: `linux/${architecture}` },
  });
}

function parseManifest(reference: string, found: object): ImageManifest {
  const { config, layers } = found as { readonly config?: unknown; readonly layers?: unknown };
  const isWhole = isDescriptor(config) && Array.isArray(layers) && layers.every(isDescriptor);
  if (!isWhole || layers.length > MAX_LAYERS) throw damaged(reference, "a manifest that this version cannot read");
  const pick = ({ digest, size }: Descriptor) => ({ digest, size });
  return { config: pick(config), layers: layers.map(pick) };
}

/** Digests become names of files, so their form is checked. */
function isDescriptor(value: unknown): value is Descriptor {
  if (typeof value !== "object" || value === null) return false;
  const { digest, size } = value as Partial<Descriptor>;
  return typeof digest === "string" && DIGEST.test(digest) && Number.isSafeInteger(size) && Number(size) >= 0;
}
