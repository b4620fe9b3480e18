import { describeEscapes } from "./escape/describe-escapes.ts";
import { useNetworkBed } from "./shared-bed.ts";

const bed = await useNetworkBed();
const client = bed.node.client();

describeEscapes("gVisor", { bed, create: (network) => client.sandboxes.create({ network }) });
