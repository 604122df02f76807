/** Draws the picture of the folders of `src` that docs/architecture.md shows. */
import { writeFile } from 'node:fs/promises';
import { drawFolders, PICTURE } from '../support/imports.ts';

await writeFile(PICTURE, await drawFolders());
