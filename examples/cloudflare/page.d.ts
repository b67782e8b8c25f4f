// Wrangler bundles pages as text.
declare module "*.html" {
  const page: string;
  export default page;
}
