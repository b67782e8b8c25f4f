// The program that runs tools: `node tools.ts <address of the session>`. Start as many as you like.
import { setTimeout } from "node:timers/promises";
import { eq } from "@tanstack/db";
import { toolDefinition } from "@tanstack/ai";
import { createApprovals, createClaims, createToolExecutionEffect } from "perdure/collections";
import { z } from "zod";
