import { createContext } from "react";

/** Where the files of the conversation that is shown are: an address that the name of a file is put behind. */
export const FilesAddress = createContext<string | undefined>(undefined);
