import { posix } from "node:path";

/** The small files of an archive, by name: manifests, indexes and configs. */
export type Documents = ReadonlyMap<string, string>;

/** Node.js names of processors, and their names in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
/** Stops an index that refers to itself. */
const MAX_INDEXES = 4;
/** Engines support 128. */
const MAX_LAYERS = 1000;

/**
 * The file names of an image's layers, the lowest first; undefined if the archive is itself a root filesystem. Throws errors
 * with user-facing messages.
 */
export function findLayers(documents: Documents, architecture = ARCHITECTURES[process.arch]): string[] | undefined {
  const layers = listedLayers(documents, architecture);
  if (layers === undefined || layers.length <= MAX_LAYERS) return layers;
  throw new Error(`it lists more than ${MAX_LAYERS} layers`);
}

function listedLayers(documents: Documents, architecture: string | undefined): string[] | undefined {
  const manifest = documents.get("manifest.json");
  if (manifest !== undefined) return engineLayers(manifest);
  const index = documents.get("index.json");
  if (documents.get("oci-layout") === undefined || index === undefined) return undefined;
  return layoutLayers(documents, index, { architecture, indexes: 0 });
}

/** Reads `manifest.json`, which every engine writes. */
function engineLayers(text: string): string[] {
  const images = JSON.parse(text) as readonly { readonly Layers?: unknown }[];
  if (!Array.isArray(images) || images.length !== 1) throw new Error("it must contain exactly one image");
  const layers = images[0]?.Layers;
  if (!isTexts(layers)) throw new Error("its manifest.json lists no layers");
  return layers.map((name) => posix.normalize(name));
}

interface Descriptor {
  readonly digest?: unknown;
  readonly platform?: { readonly architecture?: string } | undefined;
}

interface Search {
  readonly architecture: string | undefined;
  readonly indexes: number;
}

function layoutLayers(documents: Documents, text: string, { architecture, indexes }: Search): string[] {
  const { manifests, layers } = JSON.parse(text) as {
    manifests?: readonly Descriptor[];
    layers?: readonly Descriptor[];
  };
  if (Array.isArray(layers)) return layers.map(blobName);
  if (!Array.isArray(manifests) || indexes >= MAX_INDEXES) throw new Error("its index.json refers to no image");
  const fitting = manifests.filter(({ platform }) => (platform?.architecture ?? architecture) === architecture);
  const [chosen, ...others] = fitting;
  if (chosen === undefined) throw new Error(`it has no image for ${architecture}`);
  if (others.length > 0) throw new Error("it must contain exactly one image");
  const next = documents.get(blobName(chosen));
  if (next === undefined) throw new Error(`${blobName(chosen)} is missing`);
  return layoutLayers(documents, next, { architecture, indexes: indexes + 1 });
}

function blobName({ digest }: Descriptor): string {
  const hex = typeof digest === "string" ? /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] : undefined;
  if (hex === undefined) throw new Error("it contains an invalid digest");
  return `blobs/sha256/${hex}`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
}
