/** The parts of a reference such as `registry.example:5000/team/app:1.2`. */
export interface ImageReference {
  readonly registry: string;
  /** The engine's name of the image, with the registry if the reference has one. */
  readonly name: string;
  /** A tag, or a digest with its algorithm. Without one an engine would pull every tag. */
  readonly tag: string;
}

const DEFAULT_REGISTRY = "docker.io";

export function parseImageReference(reference: string): ImageReference {
  const [name = "", digest] = reference.split("@");
  const colon = name.lastIndexOf(":");
  const hasTag = colon > name.lastIndexOf("/");
  const repository = hasTag ? name.slice(0, colon) : name;
  const tag = digest ?? (hasTag ? name.slice(colon + 1) : "latest");
  const [first = "", ...rest] = repository.split("/");
  const isRegistry = rest.length > 0 && (first.includes(".") || first.includes(":") || first === "localhost");
  return { registry: isRegistry ? first : DEFAULT_REGISTRY, name: repository, tag };
}
