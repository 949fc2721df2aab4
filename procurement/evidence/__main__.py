"""Read evidence without Django: python -m procurement.evidence FILE… [--context FILE] [limits]."""

from procurement.evidence.command import main

if __name__ == "__main__":
    raise SystemExit(main())
