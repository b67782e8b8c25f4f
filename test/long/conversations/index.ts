import type { Conversation } from "../talk.ts";
import { analysis } from "./analysis.ts";
import { bank } from "./bank.ts";
import { coding } from "./coding.ts";
import { crew } from "./crew.ts";
import { game } from "./game.ts";
import { group } from "./group.ts";
import { legal } from "./legal.ts";
import { maths } from "./maths.ts";
import { medical } from "./medical.ts";
import { mixed } from "./mixed.ts";
import { recipe } from "./recipe.ts";
import { shop } from "./shop.ts";
import { support } from "./support.ts";
import { travel } from "./travel.ts";

/** All long conversations, by what they are about. */
export const conversations: readonly (() => Conversation)[] = [
  ...[coding, travel, support, legal, recipe, maths, analysis],
  ...[group, game, medical, bank, shop, crew, mixed],
];
