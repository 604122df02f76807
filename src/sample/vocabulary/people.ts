/** Names of the people in the sample's calls. All invented; addresses use the reserved domain `.example` (RFC 2606). */

/** A name as it is written, and as it stands in an e-mail or web address. */
export type Name = readonly [written: string, address: string];

/** Names by commas; behind a slash the address, where it is not the name's own letters in lower case. */
export function parseNames(text: string): readonly Name[] {
  return text
    .trim()
    .split(/,\s+/)
    .map((entry) => {
      const [written = '', address = written.toLowerCase().replaceAll(/[^a-z]/g, '')] = entry.split('/');
      return [written, address];
    });
}

export const GIVEN_NAMES = parseNames(`
Priya, Marcus, Elena, Tom, Zoë/zoe, Daniel, Aisha, Łukasz/lukasz, Grace, José/jose, Hannah, Kenji, Fatima,
Oliver, Chloé/chloe, Ravi, Sofia, Ben, Ingrid, Dmitri, Naomi, Jamal, Mei, Patrick, Leila, Sam, Victoria, Mateo,
Anneke, Carlos, Ruth, Siobhán/siobhan, محمد/mohammed, Björn/bjorn, Tamara, 美咲/misaki
`);

export const FAMILY_NAMES = parseNames(`
Raman, Okafor, Lindqvist, Hartley, Nguyen, Costa, Whitfield, O'Brien, Moreau, Tanaka, Castellanos,
Müller/mueller, Petrov, Adeyemi, Sinclair, Patel, van der Berg, Silva, Kowalska, Bennett, Haddad, Fitzgerald,
Yamamoto, Delgado, Novak, Carmichael, Ibrahim, Larsen, Reyes, Thornton
`);

/** What the people on the buying side do. */
export const BUYER_ROLES = `
VP Operations, Head of Finance, Director of IT, Chief of Staff, Operations Manager, Procurement Lead, CFO, COO,
Head of Data, Regional Director, Security Architect, Programme Manager
`
  .trim()
  .split(/,\s+/);
