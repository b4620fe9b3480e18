import type { Engine } from "../engine/engine.ts";
import { CREDENTIAL } from "./registry.ts";
import { importTestImage, type TestImageOptions } from "./test-image.ts";

/** Puts an image into a registry and takes it away from the engine. */
export async function pushTestImage(engine: Engine, name: string, options: TestImageOptions = {}): Promise<void> {
  await importTestImage(engine, { ...options, name });
  const image = engine.docker.getImage(name);
  const answer = await image.push({ authconfig: { ...CREDENTIAL, serveraddress: "" } } as object);
  let words = "";
  for await (const piece of answer) words += String(piece);
  if (words.includes('"error"')) throw new Error(`${name} was not pushed: ${words.slice(-500)}`);
  await image.remove({ force: true });
}
