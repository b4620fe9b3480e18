import type { Engine } from "../engine/engine.ts";
import { CREDENTIAL } from "./registry.ts";
import { importTestImage, type TestImageOptions } from "./test-image.ts";

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
